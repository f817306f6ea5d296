#pragma once

#include <span>
#include <string_view>

#include "planner/workbench.hpp"

namespace hipress::planner {

/// What a pass works with.
struct PassContext {
  const Problem& problem;
  Budget& budget;  ///< of all passes together; a pass counts what it simulates
  double share;    ///< of the budget, until which this pass may go on

  bool over() const { return budget.over(share); }
};

/// What polishes a plan after a search. One file and one row in passes().
struct Pass {
  std::string_view name;
  std::string_view help;  ///< what it leaves better
  /// The plan, or a changed one whose iteration on the network asked for is not longer.
  TimedPlan (*run)(const PassContext& context, const TimedPlan& plan);
};

/// In the order in which they run.
std::span<const Pass> passes();

/// Bulk groups, batches and transfer order, where a change of one of them makes the iteration
/// shorter.
TimedPlan refine_shape(const PassContext& context, const TimedPlan& plan);

/// More accurate algorithms, or none, wherever that makes the iteration no longer.
TimedPlan more_accurate(const PassContext& context, const TimedPlan& plan);

/// Smaller K wherever that makes the iteration no longer.
TimedPlan fewer_partitions(const PassContext& context, const TimedPlan& plan);

/// Algorithms that no decision uses are dropped, the others renumbered.
TimedPlan unused_algorithms(const PassContext& context, const TimedPlan& plan);

}  // namespace hipress::planner
