#include "planner/search/passes/free_changes.hpp"

#include <span>

#include "casync/layout.hpp"
#include "planner/search/moves.hpp"

namespace hipress::planner {
namespace {

using Changes = std::span<const Move::Change>;

constexpr double kEstimatingShare = 0.7;  // of what a pass may use; the rest is for accepting

/// Changes that one after the other leave the estimated iteration at most `slack` longer.
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

/// Accepts what leaves the iteration on the network asked for within a limit.
class Acceptance {
 public:
  Acceptance(double limit_s, const PassContext& context, Workbench& bench, double iteration_s)
      : limit_s_(limit_s),
        context_(context),
        bench_(bench),
        accepted_(bench.plan()),
        iteration_s_(iteration_s) {}

  void take(Changes changes) {
    if (changes.empty() || context_.over()) return;
    Candidate changed = accepted_;
    for (const Move::Change& change : changes) changed.options[change.gradient] = change.option;
    const std::optional<double> time_s = bench_.time_s(changed);
    context_.budget.count(1);
    if (time_s && *time_s <= limit_s_) {
      accepted_ = std::move(changed);
      iteration_s_ = *time_s;
      return;
    }
    if (changes.size() == 1) return;
    const std::size_t half = changes.size() / 2;
    take(changes.first(half));
    take(changes.subspan(half));
  }

  TimedPlan result() const { return bench_.timed(accepted_, iteration_s_); }

 private:
  const double limit_s_;
  const PassContext& context_;
  Workbench& bench_;
  Candidate accepted_;
  double iteration_s_;
};

}  // namespace

TimedPlan change_within(double limit_s, const PassContext& context, const TimedPlan& plan,
                        const Preference& preference) {
  Workbench bench(context.problem, plan);
  const double slack = plan.iteration_s > 0 ? limit_s / plan.iteration_s - 1 : 0;
  const std::vector<Move::Change> changes = choose(slack, context, bench, preference);
  if (changes.empty()) return plan;
  Acceptance acceptance(limit_s, context, bench, plan.iteration_s);
  acceptance.take(changes);
  return acceptance.result();
}

}  // namespace hipress::planner
