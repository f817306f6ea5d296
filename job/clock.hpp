#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "transport/endpoint.hpp"

namespace hipress::job {

using transport::Clock;

/// Monotonic clock of a rank's machine.
struct MachineClock {
  std::string boot;  ///< boot id; ranks with equal ids share the clock; empty: unknown
  std::function<Clock::time_point()> now;
};

/// Clock of this machine: Linux's boot id and steady_clock.
MachineClock machine_clock();

/// Common time of all ranks: rank 0's clock. Ranks on rank 0's machine share that clock; for other
/// ranks, the offset is estimated once.
class CommonClock {
 public:
  /// Collective: estimates the offset. Takes about 100 ms if the ranks are on several machines.
  explicit CommonClock(transport::Endpoint& endpoint, MachineClock machine = machine_clock());

  /// Collective: returns an instant, on this rank's clock, that is the same for all ranks and late
  /// enough that every rank has returned by then. Ranks that prepare an iteration before the call
  /// can thus all start it at that instant, without a barrier's delay.
  Clock::time_point agree_on_start();

  /// Offset to add to this rank's clock to get rank 0's.
  std::chrono::nanoseconds offset() const { return offset_; }

 private:
  std::chrono::nanoseconds estimate_offset();

  transport::Endpoint& endpoint_;
  MachineClock machine_;
  std::chrono::nanoseconds offset_{};
  std::chrono::nanoseconds last_exchange_{};  ///< duration of the last agreement
};

}  // namespace hipress::job
