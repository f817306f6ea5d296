#pragma once

#include "planner/choices/choices.hpp"
#include "planner/problem/problem.hpp"
#include "planner/problem/search_result.hpp"

namespace hipress::planner {

/// Minimises the simulated iteration time over everything that make_choices() lists.
///
/// Starts (starts.hpp) are simulated coarsely; from the best, local search goes through the
/// neighbourhoods (moves.hpp) until none helps, and is then kicked out of its local optimum, until
/// the budget is over. What is found is simulated exactly, on network port; where exact simulations
/// are cheap enough, local search goes on with these, and candidates are only looked at coarsely
/// first. In the end the best few are simulated on the network asked for, with batch rules too, and
/// the fastest is returned.
///
/// With a budget in evaluations, the same inputs and seed give the same plan for any number of
/// jobs. std::invalid_argument without Problem::machines.
SearchResult search_timeline(const Problem& problem);

/// The same among these plans alone.
SearchResult search_timeline(const Problem& problem, const Choices& choices);

}  // namespace hipress::planner
