#pragma once

#include <cstdint>
#include <functional>

#include "planner/problem/problem.hpp"
#include "planner/problem/search_result.hpp"
#include "planner/timing/evaluator.hpp"

namespace hipress::planner {

/// A greedy search as Espresso describes its own, written from that description: starting with
/// nothing compressed, gradients are decided one after the other, those with most to send first and
/// among these the last to be ready first, each with the option that ends the simulated timeline
/// soonest, if that is sooner than without. As there, nobody decides partitions (K = N), groups or
/// topology. Large problems are simulated coarsely (Evaluator::coarse).
SearchResult search_greedy(const Problem& problem);

/// The same for one scheme of an option set, until `stop` says so; adds to `evaluations`.
Candidate greedy_candidate(const Problem& problem, Evaluator& evaluator, std::uint32_t scheme,
                           const std::function<bool()>& stop, std::int64_t& evaluations);

}  // namespace hipress::planner
