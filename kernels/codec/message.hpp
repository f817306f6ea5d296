#pragma once

#include <cstdint>

#include "kernels/codec/lanes.hpp"

/// How the codes of a quantiser lie in a message: as bit planes.
///
/// A word is 32 consecutive elements. Its codes of P bits are P unsigned 32-bit numbers, one after
/// the other: bit l of number p is bit p of the code of the word's element l. A plane takes one
/// comparison and one instruction that packs its result into a bit per lane, on a CPU as on a GPU.
/// The bits past the last element are 0.
namespace hipress::kernels {

inline constexpr int kWordElements = 32;
inline constexpr int kMaxPlanes = 8;
inline constexpr int kMaxLevels = 1 << kMaxPlanes;

HIPRESS_LANES std::int64_t words_of(std::int64_t elements) {
  return elements / kWordElements + (elements % kWordElements != 0 ? 1 : 0);
}

/// Elements of word `word` that the slice has: 32, fewer in the last word, none behind it.
HIPRESS_LANES int elements_in_word(std::int64_t elements, std::int64_t word) {
  const std::int64_t left = elements - word * kWordElements;
  return left >= kWordElements ? kWordElements : left > 0 ? static_cast<int>(left) : 0;
}

/// A bit for each of the first `count` ≤ 32 lanes.
HIPRESS_LANES std::uint32_t first_bits(int count) { return count >= 32 ? ~0u : (1u << count) - 1u; }

}  // namespace hipress::kernels
