#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "transport/endpoint.hpp"
#include "transport/record.hpp"

namespace hipress::transport {

/// The text that a record carries.
std::string text_of(std::span<const std::byte> content);

/// Texts of the all_gathers of one rank, as they come: the k-th of each rank belong together.
/// Whoever owns it guards it.
class Gathers {
 public:
  explicit Gathers(std::size_t ranks) : ranks_(ranks) {}

  /// The number of this rank's next.
  std::uint64_t next() { return next_++; }
  /// A whole text, of this rank itself.
  void add(std::uint64_t number, int rank, const std::string& text);
  /// A piece of a rank's text. PeerError if it is out of place.
  void add(int rank, const Record& record, std::span<const std::byte> content);
  /// The first rank whose text is not complete; the number of ranks if all are.
  int missing(std::uint64_t number) const;
  Clock::time_point progress(std::uint64_t number) const { return all_.at(number).progress; }
  /// By rank, of one that lacks nothing, which is forgotten.
  std::vector<std::string> take(std::uint64_t number);

 private:
  struct Gather {
    explicit Gather(std::size_t ranks) : texts(ranks), complete(ranks) {}
    std::vector<std::string> texts;
    std::vector<bool> complete;
    Clock::time_point progress = Clock::now();
  };
  Gather& of(std::uint64_t number) { return all_.try_emplace(number, ranks_).first->second; }

  const std::size_t ranks_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, Gather> all_;
};

}  // namespace hipress::transport
