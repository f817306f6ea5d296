#include "planner/search/passes/free_changes.hpp"

#include <utility>

#include "casync/layout.hpp"

namespace hipress::planner {
namespace {

using Changes = std::span<const Move::Change>;

// Part of a pass's share for estimates; the rest is for accept().
constexpr double kEstimatingShare = 0.7;

/// Changes that, all applied, lengthen the estimated iteration by at most the share `slack`.
std::vector<Move::Change> choose(double slack, const PassContext& context, Workbench& bench,
                                 const Preference& preference) {
  const double begin = context.budget.share();
  const double until = begin + kEstimatingShare * (context.share - begin);
  std::vector<Move::Change> changes;
  Candidate current = bench.plan();
  const auto limit =
      static_cast<std::int64_t>(static_cast<double>(bench.estimate_base(current)) * (1 + slack));
  context.budget.count(1);
  for (const std::uint32_t g : casync::backward_order(context.problem.model)) {
    const std::uint16_t before = current.options[g];
    for (const std::uint16_t option : preference(bench, g, before)) {
      if (context.budget.over(until)) return changes;
      current.options[g] = option;
      context.budget.count(1);
      if (bench.estimate(current, limit) <= limit) break;
      current.options[g] = before;
    }
    if (current.options[g] == before) continue;
    changes.push_back({g, current.options[g]});
    bench.estimate_base(current);
  }
  return changes;
}

/// Applies changes as long as the plan stays within the ceiling.
class Acceptance {
 public:
  Acceptance(const Ceiling& ceiling, const PassContext& context, Workbench& bench,
             const TimedPlan& plan, bool descends)
      : ceiling_(ceiling),
        context_(context),
        bench_(bench),
        descends_(descends),
        accepted_(bench.plan()),
        plan_(plan) {}

  void take(Changes changes) {
    if (changes.empty() || context_.over()) return;
    Candidate changed = accepted_;
    for (const Move::Change& change : changes) changed.options[change.gradient] = change.option;
    std::optional<TimedPlan> fits = fitting(ceiling_, context_, bench_, changed);
    if (fits && (!descends_ || fits->upper_s < plan_.upper_s)) {
      accepted_ = std::move(changed);
      plan_ = std::move(*fits);
      return;
    }
    if (changes.size() == 1) return;
    const std::size_t half = changes.size() / 2;
    take(changes.first(half));
    take(changes.subspan(half));
  }

  TimedPlan result() const { return plan_; }

 private:
  const Ceiling& ceiling_;
  const PassContext& context_;
  Workbench& bench_;
  const bool descends_;
  Candidate accepted_;
  TimedPlan plan_;
};

}  // namespace

TimedPlan change_within(const Ceiling& ceiling, const PassContext& context, const TimedPlan& plan,
                        const Preference& preference) {
  Workbench bench(context.problem, plan);
  const double slack = plan.iteration_s > 0 ? ceiling.iteration_s / plan.iteration_s - 1 : 0;
  const std::vector<Move::Change> changes = choose(slack, context, bench, preference);
  return accept(changes, ceiling, context, bench, plan);
}

TimedPlan accept(Changes changes, const Ceiling& ceiling, const PassContext& context,
                 Workbench& bench, const TimedPlan& plan, bool descends) {
  Acceptance acceptance(ceiling, context, bench, plan, descends);
  acceptance.take(changes);
  return acceptance.result();
}

}  // namespace hipress::planner
