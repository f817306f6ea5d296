#pragma once

#include <cstdint>
#include <functional>

#include "planner/problem/problem.hpp"
#include "planner/problem/search_result.hpp"
#include "planner/timing/evaluator.hpp"

namespace hipress::planner {

/// Greedy search, as Espresso describes its own. It starts with nothing compressed, and decides one
/// gradient at a time, the largest message first; of equals, the one that is ready last. Each
/// gradient takes the option with the shortest simulated timeline, if that is shorter than with
/// raw. Partitions (K = N), groups and topology are fixed, as in Espresso. Large problems are
/// simulated coarsely (Evaluator::coarse).
SearchResult search_greedy(const Problem& problem);

/// Greedy search within one scheme, until `stop` returns true. Counts its simulations.
Candidate greedy_candidate(const Problem& problem, Evaluator& evaluator, std::uint32_t scheme,
                           const std::function<bool()>& stop, std::int64_t& evaluations);

}  // namespace hipress::planner
