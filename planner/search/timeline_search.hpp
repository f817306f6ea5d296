#pragma once

#include "planner/choices/choices.hpp"
#include "planner/problem/problem.hpp"
#include "planner/problem/search_result.hpp"

namespace hipress::planner {

/// Minimises the simulated iteration time over the plans of make_choices().
///
/// The starts (starts.hpp) are simulated coarsely. From the best ones, local search goes through
/// the neighbourhoods (moves.hpp) until no move helps. A random kick then leaves the local optimum,
/// and local search begins again, until the budget is used up. The optima are simulated exactly on
/// network port. If exact simulations are cheap enough, local search continues with them, and
/// coarse ones only filter candidates. Finally the best few plans, also with batch rules, are
/// simulated on the requested network, and the fastest is returned.
///
/// With a budget in evaluations, the same inputs and seed give the same plan for any number of
/// jobs. Throws std::invalid_argument without Problem::machines.
SearchResult search_timeline(const Problem& problem);

/// Like search_timeline(problem), among the plans of `choices` only.
SearchResult search_timeline(const Problem& problem, const Choices& choices);

}  // namespace hipress::planner
