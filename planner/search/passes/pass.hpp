#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "planner/timing/workbench.hpp"

namespace hipress::planner {

/// Alternatives to a plan. Passes must not make the plan slower than these.
struct Rivals {
  /// Best known plan without compression; null: unknown.
  const TimedPlan* uncompressed = nullptr;
  std::vector<TimedPlan> others = {};
};

/// Limits that a pass must keep: the iteration's median and its upper end, in seconds.
struct Ceiling {
  double iteration_s = 0;
  std::optional<double> upper_s = {};  ///< 90th percentile; none: unknown
};

/// Input of a pass.
struct PassContext {
  const Problem& problem;
  Budget& budget;  ///< shared by all passes; every pass counts its simulations in it
  double share;    ///< used share of the budget at which this pass must end
  Rivals rivals = {};
  /// Fastest time so far in seconds, to which the tolerance refers; 0: the given plan's time.
  double fastest_s = 0;

  bool over() const { return budget.over(share); }
  /// Ceiling for changes of `plan`: its own times. For a pass for accuracy it is higher by
  /// Problem::tolerance, but not above any rival's times.
  Ceiling ceiling(const TimedPlan& plan, bool for_accuracy) const;
};

/// True if the plan keeps the ceiling. If its upper end is unknown, only its median is compared.
bool is_within(const Ceiling& ceiling, const TimedPlan& plan);

/// Simulates the candidate on the requested network, with its upper end if the ceiling has one.
/// Returns nullopt if it exceeds the ceiling. Counts the simulations.
std::optional<TimedPlan> fitting(const Ceiling& ceiling, const PassContext& context,
                                 Workbench& bench, const Candidate& candidate);

/// Improvement of a plan after the search. Adding one is one file and one row in passes().
struct Pass {
  std::string_view name;
  std::string_view help;  ///< the improvement
  /// Returns the plan, or a changed one within PassContext::ceiling().
  TimedPlan (*run)(const PassContext& context, const TimedPlan& plan);
  bool for_accuracy = false;
};

/// Passes in the order in which they run.
std::span<const Pass> passes();

/// Lowers the plan's upper end if a rival's is lower. Takes the rival, or as many of its decisions
/// as the ceiling allows, or decisions that are faster on slower machines.
TimedPlan lower_upper_end(const PassContext& context, const TimedPlan& plan);

/// Reduces the encodings between sender and receiver: takes a plan for a topology that encodes less
/// often, within the ceiling for accuracy, with the plan's or a rival's decisions or searched ones.
TimedPlan fewer_encodings(const PassContext& context, const TimedPlan& plan);

/// Changes bulk rule, batch rule or transfer order if that makes the iteration shorter.
TimedPlan refine_scheme(const PassContext& context, const TimedPlan& plan);

/// Minimises the loss within the ceiling for accuracy. Compresses nothing if the ceiling allows it;
/// otherwise uses raw or more accurate algorithms for as many gradients as possible. Afterwards no
/// single gradient could be raw with the rest unchanged, unless the budget ended first.
TimedPlan more_accurate(const PassContext& context, const TimedPlan& plan);

/// Reduces K wherever that makes the iteration no longer.
TimedPlan fewer_partitions(const PassContext& context, const TimedPlan& plan);

/// Removes algorithms that no decision uses, and renumbers the others.
TimedPlan unused_algorithms(const PassContext& context, const TimedPlan& plan);

}  // namespace hipress::planner
