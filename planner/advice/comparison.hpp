#pragma once

#include "planner/analysis/verdict.hpp"
#include "planner/search/passes/pass.hpp"
#include "planner/search/search.hpp"

/// Rivals of a plan: baselines, and the best plan without compression.
namespace hipress::planner {

/// Simulates the plan and the baselines. Adds approximations that were made, such as a simpler
/// network, to the diagnostics of `found`.
Comparison compare_with_baselines(const Problem& problem, SearchResult& found,
                                  Extent extent = Extent::kAll);

/// Simulates plans of `known` again, on the machines of `problem`: its contenders, and its
/// baselines that took less than 1.2 times as long as one of these. Forecasts the fastest. Sets
/// `planned` to the faster of the result's `uncompressed` and `compressed`. Lists no baselines.
Comparison compare_again(const Problem& problem, const Comparison& known, TimedPlan& planned);

/// Searches for the best plan without compression, within limits.
SearchResult search_uncompressed(const Problem& problem, const Limits& limits);

/// Sets Comparison::uncompressed to the fastest plan without compression: `found`, which
/// search_uncompressed() returned, or a baseline. Sets Comparison::raw to the fastest of these
/// plans that may_be_plan() allows.
void consider_uncompressed(const Problem& problem, const SearchResult& found,
                           Comparison& comparison);

/// Sets Comparison::compressed to the fastest plan that compresses: `plan`, or a baseline that
/// may_be_plan() allows. Sets Comparison::elsewhere to the fastest other baseline that compresses
/// with the problem's algorithms, for example with another topology. `problem` is the plan's
/// problem, `given` that of the baselines. They differ if the plan has the GPUs at the other level
/// (planner/problem/levels.hpp).
void consider_compressed(const Problem& problem, const Problem& given, const TimedPlan& plan,
                         Comparison& comparison);

/// Replaces `found` by the fastest baseline or the best plan without compression, if that is faster
/// and may_be_plan() allows it. A search that optimises is thus never worse than these.
void take_faster(const Problem& problem, Comparison& comparison, SearchResult& found);

/// Sets Baseline::response, within the budget, of baselines that may_be_plan() allows and whose
/// 90th percentile may be below the plan's. The passes after the search read it through
/// rivals_of(). `problem` and `given` are as in consider_compressed().
void add_responses_of_rivals(const Problem& problem, const Problem& given, const TimedPlan& plan,
                             Comparison& comparison);

/// Plans that the passes' result must not be slower than: those that may_be_plan() allows. If the
/// plan compresses nothing, only plans that compress nothing. The result points into `comparison`.
Rivals rivals_of(const Problem& problem, const casync::Plan& plan, const Comparison& comparison);

/// Sentence about the baseline with the lowest 90th percentile: "baseline all has a lower 90th
/// percentile …". Empty if the plan's is lowest or unknown.
std::string about_upper_end(const Problem& problem, const casync::Plan& plan,
                            const Comparison& comparison);

/// Sets the responses of the plan, of all contenders, and of the baseline that the job runs today.
void add_responses_of_contenders(const Problem& problem, const Problem& given,
                                 const TimedPlan& plan, Comparison& comparison);

/// Sets the remaining responses: of plan, contenders, and the baselines not yet forecast.
void add_responses(const Problem& problem, const Problem& given, const TimedPlan& plan,
                   Comparison& comparison);

}  // namespace hipress::planner
