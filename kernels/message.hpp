#pragma once

#include <cstdint>

#include "kernels/lanes.hpp"

/// The message of a quantiser: one Header, then the codes of the elements as bit planes.
///
/// A word is 32 consecutive elements. Its codes of P bits are P unsigned 32-bit numbers, one after
/// the other: bit l of number p is bit p of the code of the word's element l. One comparison and
/// one "which lanes" instruction make a plane, on a CPU as on a GPU. The bits past the last element
/// are 0.
namespace hipress::kernels {

inline constexpr int kWordElements = 32;
inline constexpr int kMostPlanes = 8;
inline constexpr int kMostLevels = 1 << kMostPlanes;

/// 16 bytes, so that the planes behind it are as aligned as the message.
struct Header {
  float first = 0;  ///< the algorithm's two numbers
  float second = 0;
  std::uint32_t elements = 0;  ///< of the slice, modulo 2^32
  std::uint8_t algorithm = 0;  ///< its kTag
  std::uint8_t planes = 0;     ///< bits per code
  std::uint8_t non_finite =
      0;                     ///< 1: the slice holds a NaN or infinity and decodes to NaN everywhere
  std::uint8_t version = 1;  ///< of this layout
};
static_assert(sizeof(Header) == 16);

HIPRESS_LANES std::int64_t words_of(std::int64_t elements) {
  return elements / kWordElements + (elements % kWordElements != 0 ? 1 : 0);
}

/// Bytes of the message of a slice; 0 for 0 elements.
HIPRESS_LANES std::int64_t plane_message_bytes(std::int64_t elements, int planes) {
  if (elements <= 0) return 0;
  return static_cast<std::int64_t>(sizeof(Header)) + words_of(elements) * 4 * planes;
}

/// Elements of word `word` that the slice has: 32, fewer in the last word, none behind it.
HIPRESS_LANES int elements_in_word(std::int64_t elements, std::int64_t word) {
  const std::int64_t left = elements - word * kWordElements;
  return left >= kWordElements ? kWordElements : left > 0 ? static_cast<int>(left) : 0;
}

/// The header of a message is one that `algorithm` wrote for a slice of `elements` elements.
template <class Algorithm>
HIPRESS_LANES bool fits(const Header& header, const Algorithm& algorithm, std::int64_t elements) {
  return header.version == Header().version && header.algorithm == Algorithm::kTag &&
         header.planes == algorithm.planes() && header.non_finite <= 1 &&
         header.elements == static_cast<std::uint32_t>(elements) &&
         (header.non_finite == 1 || algorithm.plausible(header));
}

/// The value that a code stands for under a header that fits.
template <class Algorithm>
HIPRESS_LANES float level_under(const Header& header, const Algorithm& algorithm, int code) {
  return header.non_finite == 0 ? algorithm.level(header, code) : not_a_number();
}

/// A bit for each of the first `count` ≤ 32 lanes.
HIPRESS_LANES std::uint32_t first_bits(int count) { return count >= 32 ? ~0u : (1u << count) - 1u; }

}  // namespace hipress::kernels
