#pragma once

#include <string_view>

#include "planner/problem/problem.hpp"

namespace hipress::planner {

/// Its name among named plans (named_plans.hpp).
inline constexpr std::string_view kZeroPlusPlus = "zeropp";

/// ZeRO++ (Wang et al., arXiv 2306.10209): shards over all nodes, gathered for forward in int8
/// (qwZ) and for backward within each host (hpZ), gradients reduced in int4 by an exchange within
/// hosts and another between them (qgZ). Every node is a GPU; where hosts have one each, qwZ and
/// qgZ alone.
casync::Plan zeropp(const Problem& problem);

}  // namespace hipress::planner
