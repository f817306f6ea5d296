#pragma once

#include <cstdint>

#include "kernels/codec/lanes.hpp"

/// Layout of a quantiser's codes in a message: bit planes.
///
/// A word is 32 consecutive elements. Its codes of P bits are stored as P consecutive unsigned
/// 32-bit numbers: bit l of number p is bit p of the code of element l. The bits past the last
/// element are 0. CPUs and GPUs make a plane with one comparison, and one instruction that packs
/// its result into a bit per lane.
namespace hipress::kernels {

inline constexpr int kWordElements = 32;
inline constexpr int kMaxPlanes = 8;
inline constexpr int kMaxLevels = 1 << kMaxPlanes;

HIPRESS_LANES std::int64_t words_of(std::int64_t elements) {
  return elements / kWordElements + (elements % kWordElements != 0 ? 1 : 0);
}

/// Number of the slice's elements in word `word`: 32, fewer in the last word, 0 past the end.
HIPRESS_LANES int elements_in_word(std::int64_t elements, std::int64_t word) {
  const std::int64_t left = elements - word * kWordElements;
  return left >= kWordElements ? kWordElements : left > 0 ? static_cast<int>(left) : 0;
}

/// Mask with the lowest `count` bits set; `count` ≤ 32.
HIPRESS_LANES std::uint32_t first_bits(int count) { return count >= 32 ? ~0u : (1u << count) - 1u; }

}  // namespace hipress::kernels
