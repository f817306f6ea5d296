#include <algorithm>
#include <optional>
#include <utility>

#include "planner/search/passes/pass.hpp"
#include "planner/search/search.hpp"
#include "planner/search/timeline_search.hpp"
#include "planner/timing/forecast.hpp"

namespace hipress::planner {
namespace {

// Part of the pass's share that the search for each topology gets.
constexpr double kShareOfSearch = 0.5;

/// Topologies that encode less often than the plan's, the one with fewest encodings first.
std::vector<std::string> rarer(const Problem& problem, const casync::Plan& plan) {
  const auto encodings = [&](const std::string& name) {
    return casync::find_topology(name).encodings_of(plan.nodes);
  };
  std::vector<std::string> names = topologies_of(problem);
  std::erase_if(names, [&](const std::string& name) {
    return sends_raw_alone(name) || encodings(name) >= encodings(plan.topology);
  });
  std::ranges::stable_sort(names, {}, encodings);
  return names;
}

/// The plan's decisions under the given topology, with a scheme that is otherwise the plan's.
std::optional<TimedPlan> by(const std::string& topology, const Ceiling& ceiling,
                            const PassContext& context, const TimedPlan& plan) {
  Workbench bench(context.problem, plan);
  const std::vector<Scheme>& schemes = bench.choices().schemes;
  const Scheme own = schemes[bench.plan().scheme];
  for (std::uint32_t i = 0; i < schemes.size() && !context.over(); ++i) {
    Scheme same = schemes[i];
    if (same.topology != topology) continue;
    same.topology = own.topology;
    if (same != own) continue;
    Candidate changed = bench.plan();
    changed.scheme = i;
    return fitting(ceiling, context, bench, changed);
  }
  return std::nullopt;
}

/// Searches for a plan with this topology only, within the ceiling.
std::optional<TimedPlan> searched(const std::string& topology, const Ceiling& ceiling,
                                  const PassContext& context) {
  Problem problem = context.problem;
  problem.topology = topology;
  problem.limits = share_of(problem.limits,
                            kShareOfSearch * std::max(0.0, context.share - context.budget.share()));
  const SearchResult found = search_timeline(problem);
  context.budget.count(found.evaluations);
  TimedPlan plan = {.plan = found.plan, .transfer_order = found.transfer_order};
  const std::optional<double> time_s =
      affordable_iteration(problem.model, plan.plan, *problem.machines, plan.transfer_order)
          .iteration_s;
  if (!time_s || *time_s > ceiling.iteration_s) return std::nullopt;
  plan.iteration_s = *time_s;
  if (ceiling.upper_s) plan.upper_s = upper_end_s(context.problem, plan);
  context.budget.count(3);
  return is_within(ceiling, plan) ? std::optional(std::move(plan)) : std::nullopt;
}

}  // namespace

TimedPlan fewer_encodings(const PassContext& context, const TimedPlan& plan) {
  const Coarseness given_up = coarseness_of(context.problem, plan.plan);
  if (context.problem.topology != "best" || given_up.encodings < 2) return plan;
  const Ceiling ceiling = context.ceiling(plan, true);
  const auto gives_up_less = [&](const TimedPlan& other) {
    return is_within(ceiling, other) && coarseness_of(context.problem, other.plan) < given_up;
  };
  for (const std::string& topology : rarer(context.problem, plan.plan)) {
    for (const TimedPlan& rival : context.rivals.others) {
      if (rival.plan.topology == topology && gives_up_less(rival)) return rival;
    }
    std::optional<TimedPlan> other = by(topology, ceiling, context, plan);
    if (!other && !context.over()) other = searched(topology, ceiling, context);
    if (other && gives_up_less(*other)) return *std::move(other);
  }
  return plan;
}

}  // namespace hipress::planner
