#include "planner/search/passes/pass.hpp"

namespace hipress::planner {

TimedPlan unused_algorithms(const PassContext&, const TimedPlan& plan) {
  TimedPlan changed = plan;
  std::vector<std::int8_t> place(plan.plan.algorithms.size(), casync::kRaw);
  changed.plan.algorithms.clear();
  for (casync::Decision& decision : changed.plan.decisions) {
    if (decision.algorithm == casync::kRaw) continue;
    const auto old = static_cast<std::size_t>(decision.algorithm);
    if (place[old] == casync::kRaw) {
      place[old] = static_cast<std::int8_t>(changed.plan.algorithms.size());
      changed.plan.algorithms.push_back(plan.plan.algorithms[old]);
    }
    decision.algorithm = place[old];
  }
  return changed;
}

}  // namespace hipress::planner
