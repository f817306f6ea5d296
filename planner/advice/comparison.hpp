#pragma once

#include "planner/analysis/verdict.hpp"
#include "planner/search/passes/pass.hpp"
#include "planner/search/search.hpp"

/// What a plan that was found is compared with: baselines, and the best plan without compression.
namespace hipress::planner {

/// Simulates the plan and the baselines. Where something was given up for that, such as a network
/// that flows share, a sentence about it is appended to the diagnostics of `found`.
Comparison compare_with_baselines(const Problem& problem, SearchResult& found);

/// Searches the best plan that compresses nothing, within limits.
SearchResult search_uncompressed(const Problem& problem, const Limits& limits);

/// Comparison::uncompressed becomes the fastest plan without compression: `found`, which
/// search_uncompressed() returned, or a baseline. Comparison::raw becomes the fastest of these that
/// the problem allows as its answer.
void consider_uncompressed(const Problem& problem, const SearchResult& found,
                           Comparison& comparison);

/// Comparison::compressed becomes the fastest plan that compresses, with the problem's algorithms:
/// `plan`, or a baseline that the problem allows as its answer. The fastest of the other baselines
/// becomes Comparison::elsewhere. `problem` is the plan's and `given` the baselines', which may
/// have the GPUs at another level.
void consider_compressed(const Problem& problem, const Problem& given, const TimedPlan& plan,
                         Comparison& comparison);

/// Replaces `found` by the fastest baseline, or the best plan without compression, if that is
/// faster and the problem allows it as its answer: no search that optimises returns less than
/// these.
void take_faster(const Problem& problem, Comparison& comparison, SearchResult& found);

/// Sets Baseline::response, as far as the budget allows, of the baselines that the problem allows
/// as its answer, and whose 90th percentile may be below the plan's: how their times depend on what
/// is uncertain. Passes need it. `problem` is the plan's and `given` the baselines', which may have
/// the GPUs at another level.
void add_responses_of_rivals(const Problem& problem, const Problem& given, const TimedPlan& plan,
                             Comparison& comparison);

/// The plans than which passes must not make the plan slower: those that the problem allows as its
/// answer. If the plan compresses nothing, only those that compress nothing. The result points into
/// `comparison`.
Rivals rivals_of(const Problem& problem, const casync::Plan& plan, const Comparison& comparison);

/// "baseline all has a lower 90th percentile …": a sentence about the rival whose 90th percentile
/// is the lowest. Empty if none is lower than the plan's, or the plan's is not known.
std::string about_upper_end(const Problem& problem, const casync::Plan& plan,
                            const Comparison& comparison);

/// Sets the responses of the plan, of all contenders, and of the baselines that
/// add_responses_of_rivals() left without one.
void add_responses(const Problem& problem, const Problem& given, const TimedPlan& plan,
                   Comparison& comparison);

}  // namespace hipress::planner
