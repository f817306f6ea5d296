#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/codec/item.hpp"
#include "kernels/codec/lanes.hpp"
#include "kernels/codec/message.hpp"
#include "kernels/frames/draws.hpp"
#include "kernels/frames/quantizer.hpp"
#include "kernels/frames/reduction.hpp"

/// Block quantisers: algorithms that measure every block of a slice separately. A message has a few
/// floats per block, and a code of 1 to 8 bits per element, which is decoded with those floats.
///
/// An algorithm defines the arithmetic; the frames (host/block_quantizer_body.hpp,
/// cuda/block_quantizer.cuh) do loops, packing, rotation, error feedback, decoding and
/// decode-and-add. hipress-compll writes algorithms from programs; a hand-written one looks the
/// same:
///
///   struct Example {
///     static constexpr std::uint16_t kTag;         // goes into every message
///     static constexpr int kMinPlanes, kMaxPlanes; // bits per code, least and most
///     static constexpr int kSent;                  // floats of a block in the message
///     static constexpr bool kRotates;              // rotates() may be true
///     static constexpr bool kErrorFeedback;        // keeps a residual, unless switched off
///     static constexpr bool kDecodes;              // false: every message is refused
///     explicit Example(const double* values);  // parameters, in the order of the registry
///     int planes() const;
///     int block() const;     // elements of a block: 32 to kMaxBlock, a multiple of 32
///     bool rotates() const;  // values are rotated before they are measured
///     auto measure(const DrawStream&) const;
///         // an object with type Partial<F> (a Partials) and `Partial<F> of(F value, element)`
///     auto encoded_block_code() const;  // with `EncodedBlock of(const Partial<float>&)`,
///                                       // which has `float sent[kSent]`
///     auto coder(const DrawStream&) const;
///         // with `UnsignedLanes<F> of(const EncodedBlock&, F value, element)`
///     auto decoded_block_code() const;  // with `DecodedBlock of(const float* sent)`
///     auto levels() const;  // with `F of(const DecodedBlock&, UnsignedLanes<F> code)`
///   };
///
/// `element` is the index in the slice of the first lane's element.
///
/// A block's reductions combine its words in order, lane by lane; then lanes l and l + 16, l and
/// l + 8, and so on. The rotation of a block, a Walsh-Hadamard transform, spreads outliers and is
/// its own inverse. It rotates groups of elements separately. Their sizes are the powers of two
/// that add up to the block's size, largest first: 96 = 64 + 32. In a group of n elements, each
/// value is multiplied by 1 / sqrt(n); then pairs h apart become their sum and their difference,
/// for h = 1, 2, 4 … n / 2.
namespace hipress::kernels {

inline constexpr int kMaxBlock = 2048;
inline constexpr int kMaxBlockWords = kMaxBlock / kWordElements;

/// Layout of a message: a QuantizerHeader whose `planes` is the bits per code; from byte 16, the
/// floats of each block; from the next multiple of 16, the codes, word by word. A code of 8 bits
/// takes a byte. Codes of 4 bits share one: the code of element l is in the lower half, that of
/// element l + 16 in the upper half. Codes of other sizes are bit planes: bit l of the p-th 32-bit
/// number is bit p of element l's code. Codes past the last element are 0.
struct BlockLayout {
  std::int64_t blocks = 0;
  std::int64_t codes_offset = 0;
  std::int64_t bytes = 0;  ///< 0 for 0 elements
};

inline constexpr std::int64_t kSentOffset = 16;

/// Bits per code; a constant for algorithms with one size only.
template <class Algorithm>
HIPRESS_LANES int code_bits(const Algorithm& algorithm) {
  if constexpr (Algorithm::kMinPlanes == Algorithm::kMaxPlanes) return Algorithm::kMinPlanes;
  return algorithm.planes();
}

/// Size of a word's codes, in bytes.
HIPRESS_LANES int code_bytes(int bits) { return kWordElements * bits / 8; }

template <class Algorithm>
HIPRESS_LANES BlockLayout block_layout(const Algorithm& algorithm, std::int64_t elements) {
  if (elements <= 0) return {};
  BlockLayout layout;
  layout.blocks = (elements - 1) / algorithm.block() + 1;
  const std::int64_t sent =
      layout.blocks * Algorithm::kSent * static_cast<std::int64_t>(sizeof(float));
  layout.codes_offset = (kSentOffset + sent + 15) / 16 * 16;
  layout.bytes = layout.codes_offset + words_of(elements) * code_bytes(code_bits(algorithm));
  return layout;
}

/// True if the header fits a message of a slice of `elements` elements.
template <class Algorithm>
HIPRESS_LANES bool begins_as(const QuantizerHeader& header, const Algorithm& algorithm,
                             std::int64_t elements) {
  return Algorithm::kDecodes && header.tag == Algorithm::kTag &&
         header.planes == code_bits(algorithm) && header.non_finite <= 1 &&
         header.elements == static_cast<std::uint32_t>(elements);
}

/// Size of the rotation group that contains element `offset` of a block of `count` elements. It is
/// a power of two, and the group begins at a multiple of it.
HIPRESS_LANES int rotation_size(int offset, int count) {
  // Keeps the highest bit in which offset and count differ; bits above are sizes of earlier groups.
  auto bits = static_cast<std::uint32_t>(offset ^ count);
  for (const int by : {1, 2, 4, 8}) bits |= bits >> by;
  return static_cast<int>(bits - (bits >> 1));
}

/// 1 / sqrt(size), for a power of two.
HIPRESS_LANES float rotation_scale(int size) {
  const std::uint32_t exponent = (as_bits(static_cast<float>(size)) >> 23) - 127;
  const float power = as_float((127 - (exponent + 1) / 2) << 23);
  return exponent % 2 == 0 ? power : power * 0x1.6a09e6p0f;  // odd exponent: times sqrt(2)
}

}  // namespace hipress::kernels
