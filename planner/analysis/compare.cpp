#include "planner/analysis/compare.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "casync/layout.hpp"
#include "io/quantity.hpp"
#include "planner/analysis/swaps.hpp"
#include "plans/plan_builder.hpp"

namespace hipress::planner {
namespace {

std::string groups_by_hand(const casync::Plan& plan) {
  return plan.bulk_groups.empty() ? "none" : fmt::format("{}", plan.bulk_groups.size());
}

/// A plan-wide decision. Adding one is one row.
struct Aspect {
  std::string_view name;
  std::string (*say)(const TimedPlan& plan);
  void (*take)(TimedPlan& plan, const TimedPlan& from);
  bool (*same)(const TimedPlan& a, const TimedPlan& b);
};
constexpr Aspect kAspects[] = {
    {"topology", [](const TimedPlan& p) { return p.plan.topology; },
     [](TimedPlan& p, const TimedPlan& from) { p.plan.topology = from.plan.topology; },
     [](const TimedPlan& a, const TimedPlan& b) { return a.plan.topology == b.plan.topology; }},
    {"raw gradients", [](const TimedPlan& p) { return raw_topology_of(p.plan); },
     [](TimedPlan& p, const TimedPlan& from) { p.plan.raw_topology = from.plan.raw_topology; },
     [](const TimedPlan& a, const TimedPlan& b) {
       return a.plan.raw_topology == b.plan.raw_topology;
     }},
    {"bulk groups", [](const TimedPlan& p) { return describe(p.plan.bulk); },
     [](TimedPlan& p, const TimedPlan& from) { p.plan.bulk = from.plan.bulk; },
     [](const TimedPlan& a, const TimedPlan& b) { return a.plan.bulk == b.plan.bulk; }},
    {"groups by hand", [](const TimedPlan& p) { return groups_by_hand(p.plan); },
     [](TimedPlan& p, const TimedPlan& from) { p.plan.bulk_groups = from.plan.bulk_groups; },
     [](const TimedPlan& a, const TimedPlan& b) {
       return a.plan.bulk_groups == b.plan.bulk_groups;
     }},
    {"batches", [](const TimedPlan& p) { return describe(p.plan.batch); },
     [](TimedPlan& p, const TimedPlan& from) { p.plan.batch = from.plan.batch; },
     [](const TimedPlan& a, const TimedPlan& b) { return a.plan.batch == b.plan.batch; }},
    {"schedule", [](const TimedPlan& p) { return p.plan.schedule.text(); },
     [](TimedPlan& p, const TimedPlan& from) { p.plan.schedule = from.plan.schedule; },
     [](const TimedPlan& a, const TimedPlan& b) { return a.plan.schedule == b.plan.schedule; }},
    {"transfer order",
     [](const TimedPlan& p) { return std::string(sim::to_string(p.transfer_order)); },
     [](TimedPlan& p, const TimedPlan& from) { p.transfer_order = from.transfer_order; },
     [](const TimedPlan& a, const TimedPlan& b) { return a.transfer_order == b.transfer_order; }},
};

/// Simulated time. Unset if the plan is too large, or impossible: a bulk group that was made by
/// hand may have gradients with different topologies.
std::optional<double> time_s(const Problem& problem, const TimedPlan& plan) {
  try {
    return affordable_iteration(problem.model, plan.plan, *problem.machines, plan.transfer_order)
        .iteration_s;
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

void add_aspects(const Problem& problem, const TimedPlan& first, const TimedPlan& second,
                 std::vector<Difference>& differences) {
  for (const Aspect& aspect : kAspects) {
    if (aspect.same(first, second)) continue;
    TimedPlan changed = first;
    aspect.take(changed, second);
    Difference difference = {std::string(aspect.name), aspect.say(first), aspect.say(second), {}};
    if (const auto changed_s = time_s(problem, changed)) {
      difference.alone_s = *changed_s - first.iteration_s;
    }
    differences.push_back(std::move(difference));
  }
}

/// Adds differences of plans whose schedules decide several gradients together. The first gradient
/// of each such unit stands for all of it.
void add_parts(const Problem& problem, const TimedPlan& first, const TimedPlan& second,
               PlanComparison& comparison) {
  const std::vector<std::uint32_t> part_of = first.plan.schedule.timetable(problem.model).part_of;
  std::vector<bool> seen(part_of.size());
  for (const std::uint32_t g : casync::backward_order(problem.model)) {
    const std::string now = describe_option(problem.model, first.plan, g);
    const std::string other = describe_option(problem.model, second.plan, g);
    if (now == other || seen[part_of[g]]) continue;
    seen[part_of[g]] = true;
    TimedPlan changed = first;
    changed.plan.gathers.resize(part_of.size(), casync::kRaw);
    const auto place_of = [&](std::int8_t index) {
      if (index == casync::kRaw) return index;
      return plans::place_in(changed.plan.algorithms,
                             second.plan.algorithms[static_cast<std::size_t>(index)]);
    };
    for (std::uint32_t i = 0; i < part_of.size(); ++i) {
      if (part_of[i] != part_of[g]) continue;
      changed.plan.decisions[i] = second.plan.decisions[i];
      changed.plan.decisions[i].algorithm = place_of(second.plan.decisions[i].algorithm);
      changed.plan.gathers[i] = place_of(second.plan.gather_of(i));
    }
    Difference difference = {problem.model.gradients[g].name, now, other, {}};
    if (const auto changed_s = time_s(problem, changed)) {
      difference.alone_s = *changed_s - first.iteration_s;
    }
    comparison.differences.push_back(std::move(difference));
  }
}

void add_gradients(const Problem& problem, const TimedPlan& first, const TimedPlan& second,
                   PlanComparison& comparison) {
  if (kind_of(first.plan.schedule) != JobKind::kAveraging) {
    return add_parts(problem, first, second, comparison);
  }
  Workbench bench(problem, first, {&second});
  std::vector<std::uint32_t> different;
  for (const std::uint32_t g : casync::backward_order(problem.model)) {
    if (bench.plan().options[g] != bench.other(0).options[g]) different.push_back(g);
  }
  if (different.empty()) return;
  Swaps swaps(bench, problem, first, different.size());
  comparison.estimated = swaps.estimated();
  for (const std::uint32_t g : different) {
    const std::uint16_t option = bench.other(0).options[g];
    comparison.differences.push_back({problem.model.gradients[g].name,
                                      bench.describe(g, bench.plan().options[g]),
                                      bench.describe(g, option), swaps.cost_s(g, option)});
  }
}

}  // namespace

std::string describe(const casync::Aggregation& rule) {
  if (rule.threshold_bytes == 0) return "off";
  std::string text = "below " + io::format_size(rule.threshold_bytes);
  if (rule.wait) {
    text += ", at most " + io::format_duration(casync::to_seconds(*rule.wait)) + " later";
  }
  if (rule.limit_bytes) text += ", up to " + io::format_size(*rule.limit_bytes);
  return text;
}

PlanFigures plan_figures(const Problem& problem, const TimedPlan& plan) {
  const AffordableScenario how = required_scenario(problem, plan, "compare");
  const sim::ExpandedGraph expanded = sim::expand(how.scenario, how.fold);
  const sim::Result result = sim::simulate(how.scenario, expanded.graph);
  PlanFigures figures;
  figures.iteration_s = casync::to_seconds(sim::iteration_time(how.scenario, expanded.graph));
  const double share = figures.iteration_s / casync::to_seconds(result.iteration);
  figures.exposed_s = share * casync::to_seconds(result.iteration - result.compute);
  for (const std::int64_t bytes : result.bytes_sent) {
    const auto of_step = static_cast<std::int64_t>(share * static_cast<double>(bytes));
    figures.bytes_per_node = std::max(figures.bytes_per_node, of_step);
  }
  figures.compressed = plans::count_compressed(problem.model, plan.plan);
  figures.memory =
      plan_memory(how.scenario.model, how.scenario.plan,
                  expanded.graph.folded ? casync::Folding::kFolded : casync::Folding::kNone);
  return figures;
}

PlanComparison compare_plans(const Problem& problem, TimedPlan first, TimedPlan second) {
  PlanComparison comparison;
  comparison.first = plan_figures(problem, first);
  comparison.second = plan_figures(problem, second);
  first.iteration_s = comparison.first.iteration_s;
  second.iteration_s = comparison.second.iteration_s;
  add_aspects(problem, first, second, comparison.differences);
  add_gradients(problem, first, second, comparison);
  return comparison;
}

}  // namespace hipress::planner
