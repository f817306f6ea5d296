#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "planner/timing/workbench.hpp"

namespace hipress::planner {

/// Alternative plans. A polished plan must stay no slower than these.
struct Rivals {
  /// Best known plan without compression; null: unknown.
  const TimedPlan* uncompressed = nullptr;
  std::vector<TimedPlan> others = {};
};

/// Limits of an iteration's median and upper end that a pass must keep.
struct Ceiling {
  double iteration_s = 0;
  std::optional<double> upper_s = {};  ///< 90th percentile; none: unknown
};

/// Input of a pass.
struct PassContext {
  const Problem& problem;
  Budget& budget;  ///< shared by all passes; a pass counts its simulations
  double share;    ///< share of the budget at which this pass must end
  Rivals rivals = {};
  /// Fastest time so far in seconds, to which the tolerance is relative; 0: the time of the pass's
  /// own plan.
  double fastest_s = 0;

  bool over() const { return budget.over(share); }
  /// Ceiling for changes of `plan`: its own times. For accuracy, the ceiling is higher by
  /// Problem::tolerance, but not above any rival.
  Ceiling ceiling(const TimedPlan& plan, bool for_accuracy) const;
};

/// True if the plan keeps the ceiling; a plan whose upper end is unknown is judged by its median.
bool is_within(const Ceiling& ceiling, const TimedPlan& plan);

/// Simulates the candidate on the requested network, its upper end too if the ceiling has one. None
/// if it exceeds the ceiling. Counts the simulations.
std::optional<TimedPlan> fitting(const Ceiling& ceiling, const PassContext& context,
                                 Workbench& bench, const Candidate& candidate);

/// Improvement of a plan after the search. One file and one row in passes().
struct Pass {
  std::string_view name;
  std::string_view help;  ///< the improvement
  /// Returns the plan, or a changed one within PassContext::ceiling().
  TimedPlan (*run)(const PassContext& context, const TimedPlan& plan);
  bool for_accuracy = false;
};

/// Passes in the order in which they run.
std::span<const Pass> passes();

/// Lowers the upper end if a rival's is lower than the plan's: takes the rival, as many of its
/// decisions as the ceiling for accuracy allows, or a plan that is faster on slower machines.
TimedPlan lower_upper_end(const PassContext& context, const TimedPlan& plan);

/// Reduces re-encodings on the way: takes a plan for a topology with fewer encodings, within the
/// ceiling for accuracy. Its decisions are the plan's, a rival's, or those of a search of its own.
TimedPlan fewer_encodings(const PassContext& context, const TimedPlan& plan);

/// Changes bulk rule, batch rule or transfer order if that makes the iteration shorter.
TimedPlan refine_scheme(const PassContext& context, const TimedPlan& plan);

/// Minimises the loss within the ceiling for accuracy: compresses nothing if that is enough, else
/// uses raw or more accurate algorithms for as many gradients as possible. Afterwards no single
/// gradient could be raw with all else unchanged, unless the budget ended before each was tried.
TimedPlan more_accurate(const PassContext& context, const TimedPlan& plan);

/// Reduces K wherever that makes the iteration no longer.
TimedPlan fewer_partitions(const PassContext& context, const TimedPlan& plan);

/// Removes algorithms that no decision uses, and renumbers the others.
TimedPlan unused_algorithms(const PassContext& context, const TimedPlan& plan);

}  // namespace hipress::planner
