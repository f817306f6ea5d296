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

/// Comparison of plans with different schedules, over whole periods, whose iterations may differ.
namespace hipress::planner {

/// A plan for one schedule, with its predicted figures.
struct ScheduledPlan {
  casync::Plan plan;
  std::uint32_t steps = 1;     ///< number of steps in a period
  double iteration_s = 0;      ///< mean duration of a step in a period
  double compute_s = 0;        ///< computation in a step
  sim::Response response;      ///< response of iteration_s to uncertain inputs
  sim::Traffic traffic;        ///< traffic of the busiest node
  std::size_t compressed = 0;  ///< number of compressed gradients
  /// Largest number of computation steps that begin while the mean of a fragment is on its way.
  std::uint32_t late = 0;
  Coarseness given_up = {};  ///< loss of the plan's coarsest message
  StateMemory memory;        ///< state memory of a GPU
  /// Lower bound on the step, in seconds, for all plans of the schedule; 0: unknown.
  double lower_bound_s = 0;
  double steps_ratio = 1;  ///< steps_of(): steps to a target loss relative to DDP's
  /// Time for the progress that one step of DDP makes.
  double progress_s() const { return iteration_s * steps_ratio; }
};

/// Simulates a plan over periods of its schedule, with a forecast. `problem` must be a GpuProblem's
/// for a sharded schedule. Throws as simulate() does, and io::InputError if the graph is too large.
ScheduledPlan figures_of(const Problem& problem, casync::Plan plan,
                         sim::TransferOrder order = sim::TransferOrder::kReady);

/// Index of the plan to take. Leaves out plans that need more than `memory_bytes`. Of the others,
/// compares those whose progress_s() is within the tolerance of the lowest. Takes the one with the
/// shortest period, then the lowest `late`, then the lowest `given_up`, then the least memory; the
/// first of equals. Throws io::InputError if no plan fits in memory.
std::size_t choose_schedule(std::span<const ScheduledPlan> plans, double tolerance,
                            std::int64_t memory_bytes = INT64_MAX);

/// Least GPU memory of a plan of the schedule; in half precision if the problem allows a cast.
StateMemory memory_of_schedule(const Problem& problem, const casync::Schedule& schedule);

/// Reason why a plan is left out as too large: "does not fit: 128GB of a GPU's 80GB".
std::string does_not_fit(std::int64_t bytes, std::int64_t memory_bytes);

/// Throws io::InputError because the GPUs' memory is too small for every plan. The smallest plan
/// needs `least_bytes` beside the activations. `activation_bytes`: 0 if unknown.
[[noreturn]] void refuse_memory(std::int64_t least_bytes, std::int64_t activation_bytes = 0);

/// Reason why choose_schedule() took `chosen` instead of `plan`: "takes 12.0 % longer".
std::string reason_against(const ScheduledPlan& plan, const ScheduledPlan& chosen,
                           std::int64_t memory_bytes);

}  // namespace hipress::planner
