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

/// Text content of a record.
std::string text_of(std::span<const std::byte> content);

/// Texts of a rank's all_gather calls as they arrive: the k-th texts of all ranks belong together.
/// Not synchronised; the owner locks.
class Gathers {
 public:
  explicit Gathers(std::size_t ranks) : ranks_(ranks) {}

  /// Number of this rank's next call.
  std::uint64_t next() { return next_++; }
  /// Adds this rank's own text.
  void add(std::uint64_t number, int rank, const std::string& text);
  /// Adds a segment of a rank's text. Throws PeerError if it is out of place.
  void add(int rank, const Record& record, std::span<const std::byte> content);
  /// First rank whose text is incomplete; the number of ranks if all are complete.
  int missing(std::uint64_t number) const;
  Clock::time_point progress(std::uint64_t number) const { return all_.at(number).progress; }
  /// Removes a complete all_gather and returns its texts by rank.
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
