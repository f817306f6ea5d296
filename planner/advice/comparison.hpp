#pragma once

#include "planner/analysis/verdict.hpp"
#include "planner/search/passes/pass.hpp"
#include "planner/search/search.hpp"

/// What is laid beside a plan that was found.
namespace hipress::planner {

/// Simulates the plan and the baselines; what was given up for that is added to the diagnostics.
Comparison compare_with_baselines(const Problem& problem, SearchResult& found);

/// Searches the best plan that compresses nothing, within limits.
SearchResult search_uncompressed(const Problem& problem, const Limits& limits);

/// Keeps that plan, or a faster baseline without compression, as Comparison::uncompressed, and as
/// Comparison::raw if it may be the plan.
void consider_uncompressed(const Problem& problem, const SearchResult& found,
                           Comparison& comparison);

/// Keeps the plan, or a faster baseline of the problem's algorithms, as Comparison::compressed, and
/// those that cannot be the plan as Comparison::elsewhere. `problem` is that of the plan, `given`
/// that of the baselines, which may have the GPUs at another level.
void consider_compressed(const Problem& problem, const Problem& given, const TimedPlan& plan,
                         Comparison& comparison);

/// A search that optimises must not be worse than what it is compared with: else the best of these
/// that may be the plan is its result.
void take_faster(const Problem& problem, Comparison& comparison, SearchResult& found);

/// How the times of those baselines that may be the plan depend on what is uncertain, as far as the
/// budget allows: what passes have to know. `problem` is that of the plan, `given` that of the
/// baselines, which may have the GPUs at another level.
void add_responses_of_rivals(const Problem& problem, const Problem& given, Comparison& comparison);

/// What passes must not make the plan slower than: what may be the plan, too, and compresses
/// nothing where the plan compresses nothing. The result points into `comparison`.
Rivals rivals_of(const Problem& problem, const casync::Plan& plan, const Comparison& comparison);

/// "baseline all has a lower 90th percentile …", of the rival with the lowest; empty where none is
/// lower than the plan's, or the plan's is not known.
std::string about_upper_end(const Problem& problem, const casync::Plan& plan,
                            const Comparison& comparison);

/// The same of all times. Baselines that are known already are left as they are.
void add_responses(const Problem& problem, const Problem& given, const TimedPlan& plan,
                   Comparison& comparison);

}  // namespace hipress::planner
