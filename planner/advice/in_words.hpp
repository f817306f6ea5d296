#pragma once

#include <string>
#include <vector>

#include "planner/advice/break_even_point.hpp"

namespace hipress::planner {

/// Describes the advice in sentences, with the times on which each rests: the bottleneck of the
/// job, the effect of other machines and of another schedule (with new plans), and when not to
/// compress. Empty if nothing was simulated.
std::vector<std::string> in_words(WhatIf& what_if, const Advice& advice);

}  // namespace hipress::planner
