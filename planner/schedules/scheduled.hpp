#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/problem/problem.hpp"
#include "planner/problem/state_memory.hpp"
#include "sim/forecast.hpp"
#include "sim/traffic.hpp"

/// Plans of different schedules side by side, whose iterations may differ within a period. A period
/// is simulated as it repeats.
namespace hipress::planner {

/// A plan for one schedule, and what it is predicted to take.
struct ScheduledPlan {
  casync::Plan plan;
  std::uint32_t steps = 1;     ///< steps of a period
  double iteration_s = 0;      ///< length of a step, the mean over a period
  double compute_s = 0;        ///< computation in it
  sim::Response response;      ///< how iteration_s depends on what is uncertain
  sim::Traffic traffic;        ///< bytes of the node that sends most
  std::size_t compressed = 0;  ///< number of gradients that are compressed
  /// Steps of computation that begin while a fragment's mean is under way; the most of any
  /// fragment.
  std::uint32_t late = 0;
  Coarseness given_up = {};  ///< of the coarsest message of any gradient
  StateMemory memory;        ///< that a GPU needs
  /// Seconds that a step takes at least under every plan of the schedule; 0: not known.
  double lower_bound_s = 0;
  double steps_ratio = 1;  ///< steps_of(): steps for a loss over DDP's
  double progress_s() const { return iteration_s * steps_ratio; }  ///< of what DDP learns in a step
};

/// Simulates a plan as its schedule repeats it, with a forecast. For a sharded schedule, `problem`
/// is a GpuProblem's. Throws as simulate(), io::InputError for a graph that is too large.
ScheduledPlan figures_of(const Problem& problem, casync::Plan plan,
                         sim::TransferOrder order = sim::TransferOrder::kReady);

/// The index of the plan to take. Plans that need more than `memory_bytes` are left out. Among
/// those whose progress_s() is longer than the least by at most the tolerance, it is the plan
/// that gives up least: the one with the shortest period, then the least `late`, then the least
/// `given_up`, then the least memory; the first of equals. io::InputError where no plan fits in
/// memory.
std::size_t choose_schedule(std::span<const ScheduledPlan> plans, double tolerance,
                            std::int64_t memory_bytes = INT64_MAX);

/// The least memory that a plan of the schedule keeps on a GPU: in half precision if that is
/// allowed.
StateMemory memory_of_schedule(const Problem& problem, const casync::Schedule& schedule);

/// "does not fit: 128GB of a GPU's 80GB".
std::string does_not_fit(std::int64_t bytes, std::int64_t memory_bytes);

/// Throws the io::InputError for a GPU whose memory is too small for every plan: the smallest needs
/// `least_bytes`.
[[noreturn]] void refuse_memory(std::int64_t least_bytes);

/// Why choose_schedule() took `chosen` instead of this plan, of which it speaks: "takes 12.0 %
/// longer".
std::string reason_against(const ScheduledPlan& plan, const ScheduledPlan& chosen,
                           std::int64_t memory_bytes);

}  // namespace hipress::planner
