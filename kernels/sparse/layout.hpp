#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/codec/lanes.hpp"
#include "kernels/frames/sparsifier.hpp"

/// Layout of packed messages (packed.hpp), for hosts and GPUs.
namespace hipress::kernels::sparse {

enum class Packing : std::uint8_t {
  kNone,
  kIndices,  ///< packs indices; values stay fp32
  kAll,      ///< also sends values as fp16; the encoder's state keeps the rounding error
};

inline constexpr auto kStartBytes = static_cast<std::int64_t>(sizeof(SparsifierHeader));
inline constexpr std::int64_t kWordBits = 64, kWordBytes = 8;
inline constexpr float kMaxFp16 = 65504;

HIPRESS_LANES std::int64_t words_for(std::int64_t bits) {
  return (bits + kWordBits - 1) / kWordBits;
}

/// Byte offsets of the parts, for a slice of `elements` with room for `entries`.
struct Layout {
  std::int64_t entries = 0;
  int lower_bits = 0;  ///< l, the number of low bits of an index stored as they are
  std::int64_t upper = 0, values = 0, end = 0;

  HIPRESS_LANES static Layout of(std::int64_t elements, std::int64_t entries, Packing packing) {
    Layout parts;
    parts.entries = entries;
    if (elements <= 0) return parts;
    int& l = parts.lower_bits;
    while (entries > 0 && (elements >> (l + 1)) >= entries) ++l;
    const std::int64_t lower = entries * l;
    parts.upper = kStartBytes + words_for(lower) * kWordBytes;
    // One word more than both parts need, so that the length is monotone in `elements`.
    const std::int64_t bits = lower + entries + (elements >> l) + 1;
    parts.values = kStartBytes + (words_for(bits) + 1) * kWordBytes;
    parts.end = parts.values + entries * (packing == Packing::kAll ? 2 : 4);
    return parts;
  }

  HIPRESS_LANES std::int64_t upper_words() const { return (values - upper) / kWordBytes; }
};

}  // namespace hipress::kernels::sparse
