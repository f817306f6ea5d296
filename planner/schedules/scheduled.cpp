#include "planner/schedules/scheduled.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "io/error.hpp"
#include "io/quantity.hpp"
#include "planner/problem/levels.hpp"
#include "planner/timing/workbench.hpp"
#include "plans/plan_builder.hpp"
#include "sim/compute_utilisation.hpp"
#include "sim/folding.hpp"

namespace hipress::planner {

ScheduledPlan figures_of(const Problem& problem, casync::Plan plan, sim::TransferOrder order) {
  ScheduledPlan found;
  found.plan = std::move(plan);
  const casync::Schedule& schedule = found.plan.schedule;
  AffordableScenario how =
      required_scenario(problem, {.plan = found.plan, .transfer_order = order}, "simulate");
  sim::Scenario& scenario = how.scenario;
  // The search's time limit does not apply to this simulation.
  scenario.stop = [flag = problem.limits.interrupted] { return flag.is_set(); };
  const casync::TaskGraph graph = sim::expand(scenario, how.fold).graph;
  const sim::Result result = sim::simulate(scenario, graph, sim::Timelines::kRecorded);
  found.steps = sim::steps_per_period(scenario);
  casync::Picoseconds step = result.iteration, compute = result.compute;
  if (scenario.iterations > 1) {
    const sim::SteadyState steady = sim::steady_state(graph, result.timeline, scenario.iterations);
    step = steady.period / found.steps;
    compute = steady.compute / found.steps;
  }
  found.iteration_s = casync::to_seconds(step);
  found.steps_ratio = steps_of(problem, found.plan);
  found.compute_s = casync::to_seconds(compute);
  found.response = sim::respond(scenario, graph, found.iteration_s, found.compute_s);
  found.traffic = sim::traffic(scenario, graph, result, step, compute);
  for (const casync::Synchronisation& one : schedule.timetable(problem.model).synchronisations) {
    found.late = std::max(found.late, one.awaited - one.step - 1);
  }
  found.given_up = coarseness_of(problem, found.plan);
  for (std::size_t g = 0; g < found.plan.decisions.size(); ++g) {
    const auto is_raw = [&](std::int8_t algorithm) {
      return plans::is_raw(problem.model.gradients[g], found.plan, {.algorithm = algorithm});
    };
    const bool raw = is_raw(found.plan.decisions[g].algorithm);
    found.compressed += raw && is_raw(found.plan.gather_of(static_cast<std::uint32_t>(g))) ? 0 : 1;
  }
  found.memory = memory_of(problem, found.plan);
  return found;
}

namespace {

/// Disadvantages of a plan, the most important first.
auto what_is_given_up(const ScheduledPlan& plan) {
  return std::tie(plan.steps, plan.late, plan.given_up);
}

}  // namespace

std::size_t choose_schedule(std::span<const ScheduledPlan> plans, double tolerance,
                            std::int64_t memory_bytes) {
  double limit_s = std::numeric_limits<double>::infinity();
  std::int64_t least = INT64_MAX;
  const auto fits = [&](const ScheduledPlan& plan) { return plan.memory.total() <= memory_bytes; };
  for (const ScheduledPlan& plan : plans) {
    least = std::min(least, plan.memory.total());
    if (fits(plan)) limit_s = std::min(limit_s, plan.progress_s() * (1 + tolerance));
  }
  const auto before = [](const ScheduledPlan& a, const ScheduledPlan& b) {
    const auto first = what_is_given_up(a), second = what_is_given_up(b);
    return first < second || (first == second && a.memory.total() < b.memory.total());
  };
  std::optional<std::size_t> chosen;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!fits(plans[i]) || plans[i].progress_s() > limit_s) continue;
    if (!chosen || before(plans[i], plans[*chosen])) chosen = i;
  }
  if (chosen) return *chosen;
  refuse_memory(least);
}

StateMemory memory_of_schedule(const Problem& problem, const casync::Schedule& schedule) {
  casync::Plan plan = {
      .topology = "allreduce", .nodes = problem.nodes, .algorithms = {}, .decisions = {}};
  plan.decisions.resize(problem.model.gradients.size());
  plan.schedule = schedule;
  if (kind_of(schedule) == JobKind::kSharding) {
    plan.nodes = GpuProblem(problem).problem().nodes;
    const auto cast = std::ranges::find_if(problem.algorithms, plans::is_cast);
    if (cast != problem.algorithms.end()) {
      plan.algorithms = {algorithm(*cast)};
      plan.decisions.assign(plan.decisions.size(), {.algorithm = 0});
      plan.gathers.assign(plan.decisions.size(), 0);
    }
  }
  return memory_of(problem, plan);
}

std::string does_not_fit(std::int64_t bytes, std::int64_t memory_bytes) {
  return fmt::format("does not fit: {} of a GPU's {}", io::format_amount(bytes, 3),
                     io::format_amount(memory_bytes, 3));
}

void refuse_memory(std::int64_t least_bytes, std::int64_t activation_bytes) {
  const std::string activations =
      activation_bytes == 0
          ? "without activations"
          : fmt::format(
                "and {} of activations, which `checkpoint` full or a smaller `batch` reduce",
                io::format_amount(activation_bytes, 3));
  throw io::InputError(
      fmt::format("nothing fits into `gpu_memory`: {} at least, {}; give more GPUs, `schedule` "
                  "fsdp, an `optimizer` with less state, or more memory",
                  io::format_amount(least_bytes), activations));
}

std::string reason_against(const ScheduledPlan& plan, const ScheduledPlan& chosen,
                           std::int64_t memory_bytes) {
  if (plan.memory.total() > memory_bytes) {
    return does_not_fit(plan.memory.total(), memory_bytes);
  }
  const double longer = plan.progress_s() / chosen.progress_s() - 1;
  if (what_is_given_up(chosen) < what_is_given_up(plan)) {
    return longer > 0 ? fmt::format("takes {:.1f} % longer and gives up more", 100 * longer)
                      : fmt::format("gives up more and saves {:.1f} %", -100 * longer);
  }
  const std::int64_t more = plan.memory.total() - chosen.memory.total();
  const std::string memory =
      more > 0 ? fmt::format("takes {} more memory", io::format_amount(more, 3)) : "";
  if (longer > 0) {
    return fmt::format("takes {:.1f} % longer{}", 100 * longer,
                       memory.empty() ? "" : " and " + memory);
  }
  return memory.empty() ? "is as fast within the tolerance"
                        : memory + ", and is as fast within the tolerance";
}

}  // namespace hipress::planner
