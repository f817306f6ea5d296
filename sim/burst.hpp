#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hipress::sim {

/// Token buckets of the ports, as with cloud providers and traffic shapers: bytes that a port did
/// not carry while idle, up to a depth, pass at once later. Times are picoseconds of the port at
/// full speed. A port's credit grows by 1 per picosecond up to the depth. A message takes all of
/// its work from the credit when it starts, so the credit may be negative until the work is done.
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
  std::vector<std::int64_t> paid_until_;  ///< time at which the credit will be whole again, per
                                          ///< port
};

}  // namespace hipress::sim
