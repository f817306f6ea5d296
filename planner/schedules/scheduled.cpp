#include "planner/schedules/scheduled.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <tuple>
#include <utility>

#include "casync/layout.hpp"
#include "io/error.hpp"
#include "io/quantity.hpp"
#include "planner/choices/choices.hpp"
#include "planner/problem/budget.hpp"
#include "planner/rules/alone.hpp"
#include "planner/schedules/scenario.hpp"
#include "planner/schedules/sharded.hpp"
#include "planner/timing/workbench.hpp"
#include "plans/plan_builder.hpp"
#include "sim/compute_utilisation.hpp"
#include "sim/folding.hpp"
#include "sim/parallel.hpp"

namespace hipress::planner {
namespace {

/// Simulates plans of one schedule until the problem's limits are reached.
class ScheduleSearch {
 public:
  ScheduleSearch(const Problem& problem, casync::Schedule schedule)
      : problem_(problem),
        schedule_(std::move(schedule)),
        table_(schedule_.timetable(problem.model)) {}

  casync::Plan run() {
    for (const std::string& strategy : strategies_of(problem_)) start_in(strategy);
    if (!best_) throw io::InputError(refusal_);
    improve();
    return std::move(best_->plan);
  }

 private:
  struct Timed {
    casync::Plan plan;
    double step_s = 0;
  };

  bool has_time() const {
    if (is_interrupted(problem_.limits)) return false;
    if (problem_.limits.evaluations >= 0) return evaluations_ < problem_.limits.evaluations;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin_;
    return spent.count() < problem_.limits.budget_s;
  }

  /// None where the strategy cannot carry the plan.
  std::optional<double> step_s(const casync::Plan& plan) {
    const sim::Scenario scenario = scenario_of(problem_, plan);
    try {
      const auto graph = sim::expand(scenario, sim::Fold::kExactly).graph;
      ++evaluations_;
      return casync::to_seconds(sim::iteration_time(scenario, graph));
    } catch (const std::invalid_argument& error) {
      refusal_ = error.what();
      return std::nullopt;
    }
  }

  /// Takes a plan that is shorter by more than the tolerance; the first whatever it takes.
  bool consider(casync::Plan plan) {
    const std::optional<double> time_s = step_s(plan);
    if (!time_s) return false;
    const double slack = 1 + problem_.tolerance;
    if (best_ && *time_s * slack >= best_->step_s) return false;
    best_ = {std::move(plan), *time_s};
    return true;
  }

  /// Rules in the order of what they give up.
  void start_in(const std::string& strategy) {
    Problem in_strategy = problem_;
    in_strategy.strategy = strategy;
    const auto try_rule = [&](casync::Plan (*rule)(const Problem&)) {
      if (best_ && !has_time()) return;
      casync::Plan plan = rule(in_strategy);
      plan.schedule = schedule_;
      plan.gpus_per_node = problem_.machines->cluster.gpus_per_node;
      consider(std::move(plan));
    };
    try_rule(rules::none);
    if (problem_.algorithms.empty()) return;
    const bool halves = std::ranges::find(problem_.algorithms, "fp16") != problem_.algorithms.end();
    if (halves) try_rule(rules::fp16);
    if (sends_raw_alone(strategy)) return;
    if (strategy == "ps" || strategy == "ring") try_rule(rules::secopa);
    try_rule(rules::all);
  }

  /// Fragment by fragment, until none gets better.
  void improve() {
    const std::vector<casync::Decision> options = options_of_fragments();
    for (bool better = true; better && has_time();) {
      better = false;
      for (std::uint32_t part = 0; part < table_.synchronisations.size(); ++part) {
        for (const casync::Decision& option : options) {
          if (!has_time()) return;
          casync::Plan changed = best_->plan;
          set(changed, part, option);
          better |= consider(std::move(changed));
        }
      }
    }
  }

  /// All that a fragment may be sent as: raw, and each algorithm that the plan can say, in each
  /// number of partitions.
  std::vector<casync::Decision> options_of_fragments() {
    if (sends_raw_alone(best_->plan.strategy)) return {};
    for (const std::string& name : of_slices(problem_.algorithms)) {
      const auto has = [&](const casync::Algorithm& one) { return one.name == name; };
      if (std::ranges::none_of(best_->plan.algorithms, has)) {
        best_->plan.algorithms.push_back(algorithm(name));
      }
    }
    std::vector<casync::Decision> options;
    const auto nodes = static_cast<std::int32_t>(problem_.nodes);
    for (std::int8_t a = casync::kRaw; a < static_cast<int>(best_->plan.algorithms.size()); ++a) {
      for (const std::int32_t partitions : {nodes, 2 * nodes, 4 * nodes}) {
        options.push_back({a, partitions});
      }
      if (!folded_only(problem_)) options.push_back({a, 1});
    }
    return options;
  }

  void set(casync::Plan& plan, std::uint32_t part, const casync::Decision& option) const {
    for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
      if (table_.part_of[g] == part) plan.decisions[g] = option;
    }
  }

  const Problem& problem_;
  casync::Schedule schedule_;
  casync::Timetable table_;
  std::optional<Timed> best_;
  std::string refusal_;
  std::int64_t evaluations_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

ScheduledPlan figures_of(const Problem& problem, casync::Plan plan, std::string_view optimizer) {
  ScheduledPlan found;
  found.plan = std::move(plan);
  const casync::Schedule& schedule = found.plan.schedule;
  const sim::Scenario scenario = scenario_of(problem, found.plan);
  const casync::TaskGraph graph = sim::expand(scenario, sim::Fold::kExactly).graph;
  const sim::Result result = sim::simulate(scenario, graph, sim::Timelines::kRecorded);
  found.steps = sim::steps_per_period(scenario);
  casync::Picoseconds step = result.iteration, compute = result.compute;
  if (scenario.iterations > 1) {
    const sim::SteadyState steady = sim::steady_state(graph, result.timeline, scenario.iterations);
    step = steady.period / found.steps;
    compute = steady.compute / found.steps;
  }
  found.iteration_s = casync::to_seconds(step);
  found.compute_s = casync::to_seconds(compute);
  found.response = sim::respond(scenario, graph, found.iteration_s, found.compute_s);
  found.traffic = sim::traffic(scenario, graph, result, step, compute);
  for (const casync::Synchronisation& one : schedule.timetable(problem.model).synchronisations) {
    found.late = std::max(found.late, one.awaited - one.step - 1);
  }
  found.given_up = schedule.is_sharded() ? coarseness_of_shards(problem, found.plan)
                                         : coarseness_of(problem, found.plan);
  for (std::size_t g = 0; g < found.plan.decisions.size(); ++g) {
    const auto is_raw = [&](std::int8_t algorithm) {
      return plans::is_raw(problem.model.gradients[g], found.plan, {.algorithm = algorithm});
    };
    const bool raw = is_raw(found.plan.decisions[g].algorithm);
    found.compressed += raw && is_raw(found.plan.gather_of(static_cast<std::uint32_t>(g))) ? 0 : 1;
  }
  found.memory = state_memory(problem.model, found.plan, find_optimizer(optimizer));
  return found;
}

ScheduledPlan plan_schedule(const Problem& problem, const casync::Schedule& schedule,
                            std::string_view optimizer, const std::string& shards_by) {
  if (!schedule.is_sharded()) {
    return figures_of(problem, ScheduleSearch(problem, schedule).run(), optimizer);
  }
  const GpuProblem gpus(problem);
  ShardedPlan sharded = plan_shards(gpus.problem(), schedule, shards_by);
  ScheduledPlan found = figures_of(gpus.problem(), std::move(sharded.plan), optimizer);
  found.lower_bound_s = sharded.lower_bound_s;
  return found;
}

std::vector<ScheduledPlan> plan_schedules(const Problem& problem,
                                          std::span<const casync::Schedule> schedules,
                                          std::string_view optimizer,
                                          const std::string& shards_by) {
  Problem each = problem;
  const auto jobs = std::max(1u, problem.limits.jobs);
  // Those that run at once have their time at once.
  const double at_once = std::min<double>(jobs, static_cast<double>(schedules.size()));
  const double turns = static_cast<double>(schedules.size()) / at_once;
  each.limits = share_of(problem.limits, 1 / turns);
  if (problem.limits.evaluations > 0) {
    each.limits.evaluations = std::max<std::int64_t>(
        1, problem.limits.evaluations / static_cast<std::int64_t>(schedules.size()));
  }
  std::vector<ScheduledPlan> plans(schedules.size());
  sim::run_parallel(schedules.size(), jobs, [&](std::size_t i, unsigned) {
    plans[i] = plan_schedule(each, schedules[i], optimizer, shards_by);
  });
  return plans;
}

namespace {

/// In the order in which it counts.
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
    if (fits(plan)) limit_s = std::min(limit_s, plan.iteration_s * (1 + tolerance));
  }
  std::optional<std::size_t> chosen;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!fits(plans[i]) || plans[i].iteration_s > limit_s) continue;
    if (!chosen || what_is_given_up(plans[i]) < what_is_given_up(plans[*chosen])) chosen = i;
  }
  if (chosen) return *chosen;
  refuse_memory(least);
}

StateMemory memory_of_schedule(const Problem& problem, const casync::Schedule& schedule,
                               std::string_view optimizer) {
  casync::Plan plan = {
      .strategy = "allreduce", .nodes = problem.nodes, .algorithms = {}, .decisions = {}};
  if (schedule.is_sharded()) plan.nodes = GpuProblem(problem).problem().nodes;
  plan.decisions.resize(problem.model.gradients.size());
  plan.schedule = schedule;
  return state_memory(problem.model, plan, find_optimizer(optimizer));
}

std::string does_not_fit(std::int64_t bytes, std::int64_t memory_bytes) {
  return fmt::format("does not fit: {} of a GPU's {}", io::format_amount(bytes, 3),
                     io::format_amount(memory_bytes, 3));
}

void refuse_memory(std::int64_t least_bytes) {
  throw io::InputError(
      fmt::format("nothing fits into `gpu_memory`: {} at least, without activations; give more "
                  "GPUs, `schedule` fsdp, an `optimizer` with less state, or more memory",
                  io::format_amount(least_bytes)));
}

std::string reason_against(const ScheduledPlan& plan, const ScheduledPlan& chosen,
                           std::int64_t memory_bytes) {
  if (plan.memory.total() > memory_bytes) {
    return does_not_fit(plan.memory.total(), memory_bytes);
  }
  const double longer = plan.iteration_s / chosen.iteration_s - 1;
  if (what_is_given_up(chosen) < what_is_given_up(plan)) {
    return longer > 0 ? fmt::format("takes {:.1f} % longer and gives up more", 100 * longer)
                      : fmt::format("gives up more and saves {:.1f} %", -100 * longer);
  }
  if (longer > 0) return fmt::format("takes {:.1f} % longer", 100 * longer);
  return "is as fast within the tolerance, and was asked for later";
}

}  // namespace hipress::planner
