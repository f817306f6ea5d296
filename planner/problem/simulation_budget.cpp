#include "planner/problem/simulation_budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "io/quantity.hpp"

namespace hipress::planner {
namespace {

/// Estimated seconds per task by engine, with its expansion, until a simulation was timed.
constexpr std::array<double, kEngines> kTask_s = {4e-7, 1e-6, 1e-6, 8e-7};
constexpr double kTimedTasks = 1e5;  // simulations with fewer tasks are too short to time others by
constexpr double kGrace_s = 1;       // time left after an interrupt

std::chrono::steady_clock::duration duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

/// CPU time of all threads of this process, in seconds.
double cpu_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

SimulationBudget::SimulationBudget(double seconds, io::InterruptFlag interrupted, double busy_s)
    : length_s_(seconds), busy_s_(std::max(seconds, busy_s)), interrupted_(interrupted) {
  restart();
  for (std::size_t engine = 0; engine < kTask_s.size(); ++engine) task_s_[engine] = kTask_s[engine];
}

void SimulationBudget::restart() {
  const Clock::time_point now = Clock::now();
  end_ = now + duration(length_s_);
  busy_end_ = now + duration(busy_s_);
  cpu_end_s_ = cpu_s() + length_s_;
  reserve_s_ = 0;
}

std::string SimulationBudget::objection(double tasks, SimulationKind engine) const {
  const double needed_s = tasks * task_s_[static_cast<std::size_t>(engine)];
  const double left = left_s();
  if (needed_s <= left) return {};
  if (interrupted()) return "interrupted";
  return fmt::format("it would take about {}, and the budget leaves {}",
                     io::format_duration(needed_s, 2), io::format_duration(std::max(left, 0.0), 2));
}

void SimulationBudget::note(double tasks, SimulationKind engine, double seconds) {
  if (tasks >= kTimedTasks) task_s_[static_cast<std::size_t>(engine)] = seconds / tasks;
}

SimulationBudget::Clock::time_point SimulationBudget::end(Clock::time_point now) const {
  if (busy_end_ == end_) return end_;
  return std::clamp(now + duration(cpu_end_s_ - cpu_s()), end_, busy_end_);
}

double SimulationBudget::left_s() const {
  const Clock::time_point now = Clock::now();
  Clock::time_point end = this->end(now);
  if (interrupted()) {
    Clock::rep none = 0;
    grace_end_.compare_exchange_strong(none, (now + duration(kGrace_s)).time_since_epoch().count());
    end = std::min(end, Clock::time_point(Clock::duration(grace_end_.load())));
  }
  return std::chrono::duration<double>(end - now).count() - reserve_s_;
}

}  // namespace hipress::planner
