#pragma once

#include <string>
#include <vector>

#include "planner/advice/break_even_point.hpp"

namespace hipress::planner {

/// Advice as sentences: the bottleneck of the job, the effect of different machines and of a
/// different schedule (with new plans), and when not to compress. Each sentence gives the times
/// that it rests on. Empty if nothing was simulated.
std::vector<std::string> in_words(WhatIf& what_if, const Advice& advice);

}  // namespace hipress::planner
