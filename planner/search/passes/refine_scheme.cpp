#include "planner/search/passes/pass.hpp"

namespace hipress::planner {
namespace {

/// How many of bulk rule, batch rule and transfer order differ; more where the topology does.
int differences(const Scheme& a, const Scheme& b) {
  constexpr int kOther = 100;
  return (a.strategy == b.strategy && a.raw_strategy == b.raw_strategy ? 0 : kOther) +
         (a.bulk == b.bulk ? 0 : 1) + (a.batch == b.batch ? 0 : 1) +
         (a.transfer_order == b.transfer_order ? 0 : 1);
}

}  // namespace

TimedPlan refine_scheme(const PassContext& context, const TimedPlan& plan) {
  Workbench bench(context.problem, plan);
  Candidate best = bench.plan();
  double best_s = plan.iteration_s;
  const std::vector<Scheme>& schemes = bench.choices().schemes;
  for (std::uint32_t i = 0; i < schemes.size() && !context.over(); ++i) {
    if (differences(schemes[i], schemes[best.scheme]) != 1) continue;
    Candidate changed = best;
    changed.scheme = i;
    const std::optional<double> time_s = bench.time_s(changed);
    context.budget.count(1);
    if (!time_s || *time_s >= best_s) continue;
    best = std::move(changed);
    best_s = *time_s;
  }
  return best == bench.plan() ? plan : bench.timed(best, best_s);
}

}  // namespace hipress::planner
