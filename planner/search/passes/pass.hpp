#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "planner/timing/workbench.hpp"

namespace hipress::planner {

/// Plans that may be the result, too: a plan that is polished stays no slower than they are.
struct Rivals {
  /// The best that is known which compresses nothing; null: none is.
  const TimedPlan* uncompressed = nullptr;
  std::vector<TimedPlan> others = {};
};

/// Up to where a pass may take the median, and the upper end, of an iteration.
struct Ceiling {
  double iteration_s = 0;
  std::optional<double> upper_s = {};  ///< none: it is not known
};

/// What a pass works with.
struct PassContext {
  const Problem& problem;
  Budget& budget;  ///< of all passes together; a pass counts what it simulates
  double share;    ///< of the budget, until which this pass may go on
  Rivals rivals = {};
  /// Seconds of the fastest plan so far, which the tolerance is of; 0: of the pass's own.
  double fastest_s = 0;

  bool over() const { return budget.over(share); }
  /// What is no longer than `plan`; or, for accuracy, longer by Problem::tolerance, but then no
  /// longer than any of the rivals.
  Ceiling ceiling(const TimedPlan& plan, bool for_accuracy) const;
};

/// Whether the plan is within the ceiling; a plan whose upper end is not known is by its median.
bool is_within(const Ceiling& ceiling, const TimedPlan& plan);

/// The plan with its time, and where the ceiling has one its upper end, as simulated on the network
/// asked for; none if it is not within the ceiling. Counts what was simulated.
std::optional<TimedPlan> fitting(const Ceiling& ceiling, const PassContext& context,
                                 Workbench& bench, const Candidate& candidate);

/// What polishes a plan after a search. One file and one row in passes().
struct Pass {
  std::string_view name;
  std::string_view help;  ///< what it leaves better
  /// The plan, or a changed one within PassContext::ceiling().
  TimedPlan (*run)(const PassContext& context, const TimedPlan& plan);
  bool for_accuracy = false;
};

/// In the order in which they run.
std::span<const Pass> passes();

/// Where a rival's upper end is lower than the plan's: the rival, or as many of its decisions as
/// the ceiling for accuracy allows, or what takes less on slower machines.
TimedPlan lower_upper_end(const PassContext& context, const TimedPlan& plan);

/// Where the topology encodes gradients anew on their way: a plan for another topology that does so
/// less often, within the ceiling for accuracy. Its decisions are the plan's, a rival's, or those
/// of a search of its own.
TimedPlan fewer_encodings(const PassContext& context, const TimedPlan& plan);

/// Bulk groups, batches and transfer order, where a change of one of them makes the iteration
/// shorter.
TimedPlan refine_scheme(const PassContext& context, const TimedPlan& plan);

/// The least loss within the ceiling for accuracy: nothing compressed where that is enough, else
/// raw or more accurate algorithms wherever they can be. Then no gradient is left that could be
/// raw, all else as it is, unless the budget is over before each was tried.
TimedPlan more_accurate(const PassContext& context, const TimedPlan& plan);

/// Smaller K wherever that makes the iteration no longer.
TimedPlan fewer_partitions(const PassContext& context, const TimedPlan& plan);

/// Algorithms that no decision uses are dropped, the others renumbered.
TimedPlan unused_algorithms(const PassContext& context, const TimedPlan& plan);

}  // namespace hipress::planner
