#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/problem/problem.hpp"
#include "planner/schedules/state_memory.hpp"
#include "sim/forecast.hpp"
#include "sim/traffic.hpp"

/// Plans for schedules: a period of each is simulated as it repeats.
namespace hipress::planner {

/// A plan for one schedule, and what it comes to.
struct ScheduledPlan {
  casync::Plan plan;
  std::uint32_t steps = 1;     ///< of a period
  double iteration_s = 0;      ///< a step, the mean over a period
  double compute_s = 0;        ///< of it
  sim::Response response;      ///< of iteration_s
  sim::Traffic traffic;        ///< of the node that sends most
  std::size_t compressed = 0;  ///< gradients
  std::uint32_t late = 0;      ///< steps that go on without a mean, the most of any
  Coarseness given_up = {};    ///< the most of any gradient
  StateMemory memory;          ///< of a GPU
  /// What no plan of the schedule takes less than for a step; 0: not known.
  double lower_bound_s = 0;
};

/// The row of optimizers() whose state is counted unless another is asked for.
inline constexpr std::string_view kUsualOptimizer = "adamw";

/// What a plan comes to as its schedule repeats it; of a sharded one `problem` is a GpuProblem's.
/// Throws as simulate().
ScheduledPlan figures_of(const Problem& problem, casync::Plan plan, std::string_view optimizer);

/// The plan that takes least for this schedule: the best of the rules none, fp16, SeCoPa's and all,
/// in each of the problem's strategies, and then fragment by fragment whatever of the problem's
/// algorithms and numbers of partitions makes a step shorter by more than the problem's tolerance,
/// until its limits are reached. For a sharded schedule plan_shards() by `shards_by`.
/// std::invalid_argument for a schedule that does not fit the model, io::InputError where no
/// strategy can carry it.
ScheduledPlan plan_schedule(const Problem& problem, const casync::Schedule& schedule,
                            std::string_view optimizer = kUsualOptimizer,
                            const std::string& shards_by = std::string(casync::kLibrary));

/// Plans for several schedules, `limits.jobs` at a time; each has its share of the limits. Throws
/// as plan_schedule().
std::vector<ScheduledPlan> plan_schedules(
    const Problem& problem, std::span<const casync::Schedule> schedules,
    std::string_view optimizer = kUsualOptimizer,
    const std::string& shards_by = std::string(casync::kLibrary));

/// The index of the plan to take. Plans that take more memory than there is are left out;
/// io::InputError where none fits. Of those that are longer than the fastest by at most the
/// tolerance, it is the plan that gives up least: the shortest period, then the fewest steps that a
/// mean is late, then the least `given_up`; the first of equals.
std::size_t choose_schedule(std::span<const ScheduledPlan> plans, double tolerance,
                            std::int64_t memory_bytes = INT64_MAX);

/// What each plan of the schedule keeps of a GPU's memory.
StateMemory memory_of_schedule(const Problem& problem, const casync::Schedule& schedule,
                               std::string_view optimizer);

/// "does not fit: 128GB of a GPU's 80GB".
std::string does_not_fit(std::int64_t bytes, std::int64_t memory_bytes);

/// Throws io::InputError, since at least so many bytes are needed, and are more than there are.
[[noreturn]] void refuse_memory(std::int64_t least_bytes);

/// Why choose_schedule() took `chosen` and not this plan, as a predicate: "takes 12.0 % longer".
std::string reason_against(const ScheduledPlan& plan, const ScheduledPlan& chosen,
                           std::int64_t memory_bytes);

}  // namespace hipress::planner
