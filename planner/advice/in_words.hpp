#pragma once

#include <string>
#include <vector>

#include "planner/advice/break_even_point.hpp"

namespace hipress::planner {

/// Sentences about what bounds the job, what other machines and another schedule would bring (plans
/// are made anew for these), and when not to compress. Each has the times that it was derived from.
/// Empty where nothing was simulated.
std::vector<std::string> in_words(WhatIf& what_if, const Advice& advice);

}  // namespace hipress::planner
