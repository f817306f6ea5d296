#pragma once

#include <cstdint>
#include <functional>

#include "planner/problem/problem.hpp"
#include "planner/problem/search_result.hpp"
#include "planner/timing/evaluator.hpp"

namespace hipress::planner {

/// Greedy search, after Espresso's description of its own. Starts with nothing compressed.
/// Gradients are decided one at a time, the largest message first and, among equals, the last to be
/// ready first. Each takes the option with the shortest simulated timeline, if that is shorter than
/// raw. Partitions (K = N), groups and topology are fixed, as in Espresso. Large problems are
/// simulated coarsely (Evaluator::coarse).
SearchResult search_greedy(const Problem& problem);

/// Greedy search for one scheme of an option set, until `stop` returns true; adds to `evaluations`.
Candidate greedy_candidate(const Problem& problem, Evaluator& evaluator, std::uint32_t scheme,
                           const std::function<bool()>& stop, std::int64_t& evaluations);

}  // namespace hipress::planner
