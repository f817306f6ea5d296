#pragma once

#include <string_view>

namespace hipress::traces {

/// Autograd node that adds to a parameter's gradient.
inline constexpr std::string_view kAccumulate = "torch::autograd::AccumulateGrad";
/// Prefix of a node's name during its evaluation by autograd.
inline constexpr std::string_view kEvaluate = "autograd::engine::evaluate_function: ";
/// Limit of followed nested calls.
inline constexpr int kDeepestCall = 256;

}  // namespace hipress::traces
