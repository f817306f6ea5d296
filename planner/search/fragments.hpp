#pragma once

#include <cstdint>
#include <vector>

#include "planner/problem/problem.hpp"
#include "planner/problem/search_result.hpp"

namespace hipress::planner {

/// The fastest plan that a local search finds for a schedule of local updates. It begins with the
/// best of the rules none, fp16, SeCoPa's and all, each tried with every topology of the problem.
/// Fragment by fragment it then takes a different algorithm or number of partitions if that makes a
/// step shorter by more than the problem's tolerance, until the problem's limits are reached.
///
/// Throws io::InputError if no topology can carry the schedule.
SearchResult search_fragments(const Problem& problem);

/// Plans that send the gradient's fragment in a different way, and are otherwise the same as
/// `plan`.
std::vector<casync::Plan> other_fragments(const Problem& problem, const casync::Plan& plan,
                                          std::uint32_t gradient);

}  // namespace hipress::planner
