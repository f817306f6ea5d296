#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>

#include "io/interrupt_flag.hpp"

namespace hipress::planner {

/// What simulates a plan on the network asked for. Of a folded graph, messages of one node alone
/// share links, so a task takes less than where those of all nodes do.
enum class SimulationKind : std::uint8_t { kPatterns, kPort, kFairFolded, kFair };
inline constexpr std::size_t kEngines = 4;

/// How long simulations may go on until a command ends. What would take longer is not begun, and
/// what takes longer than expected is stopped. An interrupt leaves a second. Threads may share one.
class SimulationBudget {
 public:
  /// `seconds` from now on. Where other processes keep the cores busy, until this process has had
  /// so many seconds of a core, but at most `busy_s` from now on; less than `seconds`: never
  /// longer.
  SimulationBudget(double seconds, io::InterruptFlag interrupted, double busy_s = 0);

  /// Why a simulation of so many tasks should not begin, or empty: "it would take about 20s, for
  /// which the budget leaves 3s".
  std::string objection(double tasks, SimulationKind engine) const;

  /// Takes note of how long a simulation took.
  void note(double tasks, SimulationKind engine, double seconds);

  /// Keeps so many seconds of the end for what comes last, until this is called again.
  void reserve(double seconds) { reserve_s_ = seconds; }

  /// Begins anew, with as many seconds. No simulation may be under way.
  void restart();

  /// Whether nothing may go on.
  bool over() const { return left_s() <= 0; }
  /// Until the end, without what is reserved.
  double left_s() const;
  bool interrupted() const { return interrupted_.is_set(); }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point end(Clock::time_point now) const;

  const double length_s_, busy_s_;
  Clock::time_point end_, busy_end_;
  double cpu_end_s_ = 0;  // of this process's time on cores
  const io::InterruptFlag interrupted_;
  mutable std::atomic<Clock::rep> grace_end_{0};      // after an interrupt; 0: there was none
  std::array<std::atomic<double>, kEngines> task_s_;  // by engine
  std::atomic<double> reserve_s_ = 0;
};

}  // namespace hipress::planner
