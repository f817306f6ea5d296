#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hipress::sim {

/// Token buckets of ports, as cloud providers and traffic shapers use them. A port earns credit, up
/// to a depth, which messages spend: the part that credit covers takes no time. Credit is in
/// picoseconds of the port at full speed, and grows by 1 per picosecond. A message spends credit
/// for all of its work when it starts, so credit may be negative until it ends.
class Bursts {
 public:
  Bursts(std::uint32_t ports, std::int64_t depth) : depth_(depth), paid_until_(ports, 0) {}

  /// Charges a message's work to both ports at `now`. Returns the part of the work that takes no
  /// time: the smaller of both credits, 0 to `work`.
  std::int64_t take(std::uint32_t from, std::uint32_t to, std::int64_t work, std::int64_t now) {
    const std::int64_t granted =
        std::clamp(std::min(credit(from, now), credit(to, now)), std::int64_t{0}, work);
    for (const std::uint32_t port : {from, to}) {
      paid_until_[port] = std::max(paid_until_[port], now) + work;
    }
    return granted;
  }

 private:
  std::int64_t credit(std::uint32_t port, std::int64_t now) const {
    return depth_ - std::max(std::int64_t{0}, paid_until_[port] - now);
  }

  std::int64_t depth_;
  std::vector<std::int64_t> paid_until_;  ///< per port: time at which its credit reaches the depth
};

}  // namespace hipress::sim
