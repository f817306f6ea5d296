#pragma once

#include "planner/analysis/verdict.hpp"
#include "planner/search/passes/pass.hpp"
#include "planner/search/search.hpp"

/// Rivals of a plan: baselines, and the best plan without compression.
namespace hipress::planner {

/// Simulates the plan and the baselines. Approximations, such as a simpler network, are appended to
/// the diagnostics of `found`.
Comparison compare_with_baselines(const Problem& problem, SearchResult& found,
                                  Extent extent = Extent::kAll);

/// Simulates plans of the comparison `known` on the problem's machines, with their responses: its
/// contenders, and baselines that are not much slower. Sets `planned` to the fastest that the
/// problem allows as its answer. The result has no baselines.
Comparison compare_again(const Problem& problem, const Comparison& known, TimedPlan& planned);

/// Searches for the best plan without compression, within limits.
SearchResult search_uncompressed(const Problem& problem, const Limits& limits);

/// Sets Comparison::uncompressed to the fastest plan without compression: `found`, from
/// search_uncompressed(), or a baseline. Sets Comparison::raw to the fastest of these that the
/// problem allows as its answer.
void consider_uncompressed(const Problem& problem, const SearchResult& found,
                           Comparison& comparison);

/// Sets Comparison::compressed to the fastest compressing plan with the problem's algorithms:
/// `plan`, or a baseline that the problem allows as its answer. Sets Comparison::elsewhere to the
/// fastest other baseline. `problem` is the problem of the plan; `given` is that of the baselines,
/// possibly with the GPUs at the other level.
void consider_compressed(const Problem& problem, const Problem& given, const TimedPlan& plan,
                         Comparison& comparison);

/// Replaces `found` by the fastest baseline, or by the best plan without compression, if that is
/// faster and the problem allows it as its answer. A search that optimises is therefore never worse
/// than these.
void take_faster(const Problem& problem, Comparison& comparison, SearchResult& found);

/// Sets Baseline::response, within the budget, for baselines that the problem allows as its answer
/// and whose 90th percentile may be below the plan's. Passes need it. `problem` is the problem of
/// the plan; `given` is that of the baselines, possibly with the GPUs at the other level.
void add_responses_of_rivals(const Problem& problem, const Problem& given, const TimedPlan& plan,
                             Comparison& comparison);

/// Rivals that passes must not fall behind: plans that the problem allows as its answer. If the
/// plan compresses nothing, only rivals that compress nothing. The result points into `comparison`.
Rivals rivals_of(const Problem& problem, const casync::Plan& plan, const Comparison& comparison);

/// Sentence about the rival with the lowest 90th percentile: "baseline all has a lower 90th
/// percentile …". Empty if the plan's is the lowest or unknown.
std::string about_upper_end(const Problem& problem, const casync::Plan& plan,
                            const Comparison& comparison);

/// Sets the responses of the plan, of all contenders, and of what the job runs today.
void add_responses_of_contenders(const Problem& problem, const Problem& given,
                                 const TimedPlan& plan, Comparison& comparison);

/// Sets the remaining responses: of the plan, of all contenders, and of the baselines that
/// add_responses_of_rivals() skipped.
void add_responses(const Problem& problem, const Problem& given, const TimedPlan& plan,
                   Comparison& comparison);

}  // namespace hipress::planner
