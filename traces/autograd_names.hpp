#pragma once

#include <string_view>

namespace hipress::traces {

/// Autograd function that adds to a parameter's gradient.
inline constexpr std::string_view kAccumulate = "torch::autograd::AccumulateGrad";
/// Prefix of a function's name while autograd evaluates it.
inline constexpr std::string_view kEvaluate = "autograd::engine::evaluate_function: ";
/// Maximum number of nested calls to follow.
inline constexpr int kDeepestCall = 256;

}  // namespace hipress::traces
