#pragma once

#include <string>
#include <vector>

#include "planner/advice/break_even_point.hpp"

namespace hipress::planner {

/// What bounds the job, what other machines and another schedule would bring, with plans made anew,
/// and when not to compress: a sentence each, every one with the times that it comes from. Empty
/// where nothing was simulated.
std::vector<std::string> in_words(WhatIf& what_if, const Advice& advice);

}  // namespace hipress::planner
