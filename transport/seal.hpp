#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "io/digest.hpp"

namespace hipress::transport {

/// Authenticates items at the rendezvous: an HMAC-SHA-256 of the item's name and text under a
/// secret that all ranks were given. Without a secret, items carry no proof, and the rendezvous
/// alone decides who can write them.
class Seal {
 public:
  explicit Seal(std::optional<io::Digest> secret) : secret_(secret) {}

  /// Returns an item that holds `text` and its proof.
  std::string close(std::string_view name, std::string_view text) const;
  /// Returns the text of an item. Throws std::runtime_error, with the remedy, if the item was not
  /// closed under this name and with this secret; such an item is not interpreted.
  std::string open(std::string_view name, std::string_view item) const;

 private:
  std::string proof(std::string_view name, std::string_view text) const;

  std::optional<io::Digest> secret_;
};

}  // namespace hipress::transport
