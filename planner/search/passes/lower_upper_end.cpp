#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "casync/layout.hpp"
#include "costs/assumed_spread.hpp"
#include "planner/search/passes/free_changes.hpp"
#include "sim/forecast.hpp"

namespace hipress::planner {
namespace {

constexpr std::size_t kMostRivals = 3;  // rivals to try: those with the lowest upper ends

/// Rivals with an upper end below the plan's, the lowest first.
std::vector<const TimedPlan*> steadier_rivals(const PassContext& context, const TimedPlan& plan) {
  std::vector<const TimedPlan*> found;
  for (const TimedPlan& rival : context.rivals.others) {
    if (rival.upper_s && *rival.upper_s < *plan.upper_s) found.push_back(&rival);
  }
  std::ranges::stable_sort(found, {}, [](const TimedPlan* rival) { return *rival->upper_s; });
  if (found.size() > kMostRivals) found.resize(kMostRivals);
  return found;
}

/// Takes as many of the rival's decisions as the ceiling allows, but keeps the plan's scheme. Each
/// accepted part lowers the upper end.
TimedPlan nearer_to(const TimedPlan& rival, const Ceiling& ceiling, const PassContext& context,
                    const TimedPlan& plan) {
  Workbench bench(context.problem, plan, {&rival});
  std::vector<Move::Change> changes;
  for (std::uint32_t g = 0; g < bench.plan().options.size(); ++g) {
    const std::uint16_t theirs = bench.other(0).options[g];
    if (theirs != bench.plan().options[g]) changes.push_back({g, theirs});
  }
  return accept(changes, ceiling, context, bench, plan, true);
}

/// Slows the host and the links down to the speed of the slowest 10 % of runs.
void slow_down(costs::Profile& profile, costs::Cluster& cluster) {
  constexpr double kUpperTenth = 1.2816;  // standard deviations
  const costs::Spread spread = costs::spread_of(profile);
  sim::slow_host(std::exp(kUpperTenth * std::hypot(spread.host, spread.model)), profile, cluster);
  sim::slow_links(std::exp(kUpperTenth * std::hypot(spread.links, spread.model)), profile, cluster);
}

/// Changes of single gradients that, by estimates, make the iteration shorter on slow machines, and
/// keep the ceiling on the given ones.
std::vector<Move::Change> steadier_decisions(const Ceiling& ceiling, const PassContext& context,
                                             Workbench& bench, const TimedPlan& plan) {
  const Machines& given = *context.problem.machines;
  costs::Profile profile = given.profile;
  costs::Cluster cluster = given.cluster;
  slow_down(profile, cluster);
  const Machines machines = {profile, cluster, given.network, given.memory_bytes, given.budget};
  Problem problem = context.problem;
  problem.machines = &machines;
  Workbench slow_bench(problem, plan);
  Candidate current = bench.plan();
  const double slack = plan.iteration_s > 0 ? ceiling.iteration_s / plan.iteration_s : 1;
  const auto limit =
      static_cast<std::int64_t>(static_cast<double>(bench.estimate_base(current)) * slack);
  std::int64_t slow = slow_bench.estimate_base(current);
  context.budget.count(2);
  std::vector<Move::Change> changes;
  for (const std::uint32_t g : casync::backward_order(context.problem.model)) {
    const std::uint16_t before = current.options[g];
    std::uint16_t best = before;
    for (std::uint16_t option = 0; option < bench.choices().gradients[g].size(); ++option) {
      if (option == before) continue;
      if (context.over()) return changes;
      current.options[g] = option;
      const std::int64_t time = slow_bench.estimate(current, slow);
      context.budget.count(1);
      if (time >= slow) continue;
      context.budget.count(1);
      if (bench.estimate(current, limit) > limit) continue;
      best = option;
      slow = time;
    }
    current.options[g] = best;
    if (best == before) continue;
    changes.push_back({g, best});
    bench.estimate_base(current);
    slow = slow_bench.estimate_base(current);
  }
  return changes;
}

/// Applies steadier_decisions() until they do not help, or the upper end is at most `enough_s`.
TimedPlan descend(double enough_s, const Ceiling& ceiling, const PassContext& context,
                  TimedPlan plan) {
  while (*plan.upper_s > enough_s && !context.over()) {
    Workbench bench(context.problem, plan);
    const std::vector<Move::Change> changes = steadier_decisions(ceiling, context, bench, plan);
    TimedPlan lower = accept(changes, ceiling, context, bench, plan, true);
    if (*lower.upper_s >= *plan.upper_s) break;
    plan = std::move(lower);
  }
  return plan;
}

}  // namespace

TimedPlan lower_upper_end(const PassContext& context, const TimedPlan& plan) {
  if (!plan.upper_s) return plan;
  const std::vector<const TimedPlan*> rivals = steadier_rivals(context, plan);
  if (rivals.empty()) return plan;
  TimedPlan best = plan;
  for (const bool with_tolerance : {false, true}) {
    const Ceiling ceiling = context.ceiling(plan, with_tolerance);
    for (const TimedPlan* rival : rivals) {
      if (is_within(ceiling, *rival) && *rival->upper_s < *best.upper_s) best = *rival;
    }
    for (const TimedPlan* rival : rivals) {
      if (context.over() || *rival->upper_s >= *best.upper_s) break;
      best = nearer_to(*rival, ceiling, context, best);
    }
    best = descend(*rivals.front()->upper_s, ceiling, context, std::move(best));
  }
  return best;
}

}  // namespace hipress::planner
