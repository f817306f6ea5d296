#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "io/digest.hpp"

namespace hipress::transport {

/// How an item that a rank leaves at the rendezvous shows that a rank of the job wrote it: by an
/// HMAC-SHA-256 of its name and its text under a secret that all ranks were given. Without one,
/// items are open: the rendezvous alone decides who can leave them.
class Seal {
 public:
  explicit Seal(std::optional<io::Digest> secret) : secret_(secret) {}

  /// The item that holds `text`.
  std::string close(std::string_view name, std::string_view text) const;
  /// The text that the item holds. std::runtime_error, with the remedy, if it was not closed under
  /// this name and with this secret; of such an item nothing is interpreted.
  std::string open(std::string_view name, std::string_view item) const;

 private:
  std::string proof(std::string_view name, std::string_view text) const;

  std::optional<io::Digest> secret_;
};

}  // namespace hipress::transport
