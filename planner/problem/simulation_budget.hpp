#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>

#include "io/interrupt_flag.hpp"

namespace hipress::planner {

/// Engine of a simulation. A task takes less time to simulate with kFairFolded than with kFair:
/// fewer messages share links.
enum class SimulationKind : std::uint8_t { kPatterns, kPort, kFairFolded, kFair };
inline constexpr std::size_t kEngines = 4;

/// Time limit for all simulations of a command. A simulation that is expected to take longer is not
/// started, and one that does is stopped. After an interrupt, one second is left. Thread-safe.
class SimulationBudget {
 public:
  /// Ends `seconds` from now. If other processes keep the cores busy, it ends only after `seconds`
  /// of this process's CPU time, but at most `busy_s` from now. A `busy_s` of less than `seconds`
  /// has no effect.
  SimulationBudget(double seconds, io::InterruptFlag interrupted, double busy_s = 0);

  /// Reason not to simulate: "it would take about 20s, and the budget leaves 3s". Empty: it fits.
  std::string objection(double tasks, SimulationKind engine) const;

  /// Records how long a simulation took, for later estimates.
  void note(double tasks, SimulationKind engine, double seconds);

  /// Reserves the last `seconds` for a final step, until reserve() is called again.
  void reserve(double seconds) { reserve_s_ = seconds; }

  /// Restarts with the original length. No simulation may be running.
  void restart();

  /// True once no time is left.
  bool over() const { return left_s() <= 0; }
  /// Seconds until the end, less the reserve.
  double left_s() const;
  bool interrupted() const { return interrupted_.is_set(); }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point end(Clock::time_point now) const;

  const double length_s_, busy_s_;
  Clock::time_point end_, busy_end_;
  double cpu_end_s_ = 0;  // CPU time of this process at which the budget ends
  const io::InterruptFlag interrupted_;
  // End of the second after an interrupt; 0: no interrupt came.
  mutable std::atomic<Clock::rep> grace_end_{0};
  std::array<std::atomic<double>, kEngines> task_s_;  // estimated time per task, by engine
  std::atomic<double> reserve_s_ = 0;
};

}  // namespace hipress::planner
