#pragma once

#include <cstddef>
#include <cstdint>

namespace hipress::plans {

/// Maximum number of algorithms in one plan: decisions store the index in a signed byte.
inline constexpr std::size_t kMostAlgorithms = INT8_MAX;

}  // namespace hipress::plans
