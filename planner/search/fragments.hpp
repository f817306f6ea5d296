#pragma once

#include <cstdint>
#include <vector>

#include "planner/problem/problem.hpp"
#include "planner/problem/search_result.hpp"

namespace hipress::planner {

/// Finds a fast plan for a schedule of local updates, by local search within the problem's limits.
/// It begins with the best of the rules none, fp16, SeCoPa's and all, each tried with every
/// topology of the problem. Then it goes through the fragments, and takes another algorithm or
/// number of partitions if that makes a step shorter by more than the problem's tolerance.
///
/// Throws io::InputError if no topology can carry the schedule.
SearchResult search_fragments(const Problem& problem);

/// Plans that differ from `plan` only in the way in which they send the gradient's fragment.
std::vector<casync::Plan> other_fragments(const Problem& problem, const casync::Plan& plan,
                                          std::uint32_t gradient);

}  // namespace hipress::planner
