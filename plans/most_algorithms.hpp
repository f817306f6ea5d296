#pragma once

#include <cstddef>
#include <cstdint>

namespace hipress::plans {

/// Algorithms that one plan can mix: decisions name them by a byte.
inline constexpr std::size_t kMostAlgorithms = INT8_MAX;

}  // namespace hipress::plans
