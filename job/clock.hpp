#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "transport/endpoint.hpp"

namespace hipress::job {

using transport::Clock;

/// The monotonic clock of the machine that a rank runs on.
struct MachineClock {
  std::string boot;  ///< ranks with the same text share the clock; empty: it is not known
  std::function<Clock::time_point()> now;
};

/// This machine's: Linux's boot id and steady_clock.
MachineClock machine_clock();

/// One time for all ranks, which is rank 0's clock. Ranks of rank 0's machine have the same clock;
/// for others the offset is estimated once.
class CommonClock {
 public:
  /// Collective: estimates the offset, which takes some 100 ms if the ranks are on several
  /// machines.
  explicit CommonClock(transport::Endpoint& endpoint, MachineClock machine = machine_clock());

  /// Collective: returns an instant, on this rank's clock, that is the same for all ranks, and so
  /// late that every rank has returned by then. At that instant all ranks have thus ended their
  /// preparations of an iteration, without a barrier's delays.
  Clock::time_point agree_on_start();

  /// What to add to this rank's clock to get rank 0's.
  std::chrono::nanoseconds offset() const { return offset_; }

 private:
  std::chrono::nanoseconds estimate_offset();

  transport::Endpoint& endpoint_;
  MachineClock machine_;
  std::chrono::nanoseconds offset_{};
  std::chrono::nanoseconds last_exchange_{};  ///< how long agreeing took last time
};

}  // namespace hipress::job
