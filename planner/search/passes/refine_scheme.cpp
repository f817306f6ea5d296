#include <optional>
#include <utility>

#include "planner/search/passes/pass.hpp"

namespace hipress::planner {
namespace {

/// Number of settings, out of bulk rule, batch rule and transfer order, in which the schemes
/// differ. Another topology counts as 100.
int differences(const Scheme& a, const Scheme& b) {
  constexpr int kOther = 100;
  return (a.topology == b.topology && a.raw_topology == b.raw_topology ? 0 : kOther) +
         (a.bulk == b.bulk ? 0 : 1) + (a.batch == b.batch ? 0 : 1) +
         (a.transfer_order == b.transfer_order ? 0 : 1);
}

}  // namespace

TimedPlan refine_scheme(const PassContext& context, const TimedPlan& plan) {
  Workbench bench(context.problem, plan);
  const Ceiling ceiling = context.ceiling(plan, false);
  Candidate best = bench.plan();
  TimedPlan best_plan = plan;
  const std::vector<Scheme>& schemes = bench.choices().schemes;
  for (std::uint32_t i = 0; i < schemes.size() && !context.over(); ++i) {
    if (differences(schemes[i], schemes[best.scheme]) != 1) continue;
    Candidate changed = best;
    changed.scheme = i;
    std::optional<TimedPlan> fits = fitting(ceiling, context, bench, changed);
    if (!fits || fits->iteration_s >= best_plan.iteration_s) continue;
    best = std::move(changed);
    best_plan = std::move(*fits);
  }
  return best_plan;
}

}  // namespace hipress::planner
