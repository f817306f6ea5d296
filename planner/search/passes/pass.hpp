#pragma once

#include <span>
#include <string_view>

#include "planner/timing/workbench.hpp"

namespace hipress::planner {

/// What a pass works with.
struct PassContext {
  const Problem& problem;
  Budget& budget;  ///< of all passes together; a pass counts what it simulates
  double share;    ///< of the budget, until which this pass may go on
  /// The best plan that is known which compresses nothing and may be the result; null: none is.
  const TimedPlan* uncompressed = nullptr;

  bool over() const { return budget.over(share); }
};

/// What polishes a plan after a search. One file and one row in passes().
struct Pass {
  std::string_view name;
  std::string_view help;  ///< what it leaves better
  /// The plan, or a changed one whose iteration on the network asked for is not longer, or longer
  /// within Problem::tolerance where that is for accuracy.
  TimedPlan (*run)(const PassContext& context, const TimedPlan& plan);
  bool for_accuracy = false;
};

/// In the order in which they run.
std::span<const Pass> passes();

/// Bulk groups, batches and transfer order, where a change of one of them makes the iteration
/// shorter.
TimedPlan refine_scheme(const PassContext& context, const TimedPlan& plan);

/// The least loss within Problem::tolerance of the iteration: nothing compressed where that is
/// enough, else raw or more accurate algorithms wherever they can be. Then no gradient is left that
/// could be raw, all else as it is, unless the budget is over before each was tried.
TimedPlan more_accurate(const PassContext& context, const TimedPlan& plan);

/// Smaller K wherever that makes the iteration no longer.
TimedPlan fewer_partitions(const PassContext& context, const TimedPlan& plan);

/// Algorithms that no decision uses are dropped, the others renumbered.
TimedPlan unused_algorithms(const PassContext& context, const TimedPlan& plan);

}  // namespace hipress::planner
