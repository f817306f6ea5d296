#pragma once

#include "planner/choices/choices.hpp"
#include "planner/problem/problem.hpp"
#include "planner/problem/search_result.hpp"

namespace hipress::planner {

/// Minimises the simulated iteration time over the plans of make_choices().
///
/// Starts (starts.hpp) are simulated coarsely. From the best, local search goes through the
/// neighbourhoods (moves.hpp) until no move helps; a random kick then leaves the local optimum,
/// until the budget is over. Results are simulated exactly on network port. If exact simulations
/// are cheap enough, local search continues with them, and coarse ones only filter candidates.
/// Finally the best few, with batch rules too, are simulated on the requested network, and the
/// fastest is returned.
///
/// With a budget in evaluations, the same inputs and seed give the same plan for any number of
/// jobs. Throws std::invalid_argument without Problem::machines.
SearchResult search_timeline(const Problem& problem);

/// Searches among these plans alone.
SearchResult search_timeline(const Problem& problem, const Choices& choices);

}  // namespace hipress::planner
