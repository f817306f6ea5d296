#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/codec/item.hpp"
#include "kernels/codec/lanes.hpp"
#include "kernels/codec/message.hpp"
#include "kernels/frames/draws.hpp"
#include "kernels/frames/reduction.hpp"

/// Quantisers: algorithms that map every element to a code of a few bits, and every code to a
/// level.
///
/// An algorithm defines the arithmetic; the frames (host/quantizer_body.hpp, cuda/quantizer.cuh) do
/// loops, packing, error feedback, decoding and decode-and-add. hipress-compll writes algorithms
/// from programs; a hand-written one looks the same:
///
///   struct Example {
///     static constexpr std::uint16_t kTag;        // goes into every message
///     static constexpr int kMinPlanes, kMaxPlanes;  // bits per code, least and most
///     static constexpr int kPasses;               // measuring passes, at least 1
///     static constexpr int kCodesAfter;           // measuring passes that the codes need
///     static constexpr bool kErrorFeedback;       // keeps a residual, unless switched off
///     static constexpr bool kCodesByValueAlone;   // a code depends on value and parameters only
///     struct Scalars;                             // scalars computed while measuring
///     struct Wire;                                // the numbers that the message carries
///     explicit Example(const double* values);     // parameters, in the order of the registry
///     int planes() const;
///     Scalars begin(std::int64_t elements) const;
///     auto measure(Pass<p>, const Scalars&, const DrawStream&) const;
///         // an object with type Partial<F> (a Partials) and `Partial<F> of(F value, element)`
///     void conclude(Pass<p>, const Partials<double, …>&, Scalars&) const;
///     Wire wire(const Scalars&) const;
///     auto coder(const Scalars&, const DrawStream&) const;
///         // an object with `void code(F value, element, MaskLanes<F> (&planes)[kPlanes])`
///     static bool finite(const Wire&);            // true if its floats are finite
///     bool plausible(const Wire&) const;          // true if an encoder may have written it
///     auto levels(const Wire&, std::int64_t elements) const;
///         // an object with `float operator()(int code)`: the value to which a code decodes
///   };
///
/// `element` is the index in the slice of the first lane's element.
namespace hipress::kernels {

/// Number of a measuring pass as a type, which selects an overload of measure() and conclude().
template <int kNumber>
struct Pass {
  static constexpr int kValue = kNumber;
};

/// First 8 bytes of a message. The algorithm's Wire follows. The planes begin at the next multiple
/// of 16 bytes.
struct QuantizerHeader {
  std::uint32_t elements = 0;  ///< elements of the slice, modulo 2^32
  std::uint16_t tag = 0;       ///< the algorithm's kTag
  std::uint8_t planes = 0;     ///< bits per code
  std::uint8_t non_finite =
      0;  ///< 1: the slice holds a NaN or infinity and decodes to NaN everywhere
};
static_assert(sizeof(QuantizerHeader) == 8);

/// Header and wire, as laid out in a message.
template <class Algorithm>
struct MessageStart {
  QuantizerHeader header;
  alignas(8) typename Algorithm::Wire wire;
};

/// Offset of the planes in a message, in bytes.
template <class Algorithm>
inline constexpr int kPlanesOffset = (static_cast<int>(sizeof(MessageStart<Algorithm>)) + 15) / 16 *
                                     16;

/// Size of a slice's message, in bytes; 0 for 0 elements.
HIPRESS_LANES std::int64_t quantizer_message_bytes(std::int64_t elements, int planes,
                                                   int planes_offset) {
  return elements <= 0 ? 0 : planes_offset + words_of(elements) * 4 * planes;
}

/// True if the start of a message fits the algorithm and a slice of `elements` elements.
template <class Algorithm>
HIPRESS_LANES bool fits(const MessageStart<Algorithm>& start, const Algorithm& algorithm,
                        std::int64_t elements) {
  const QuantizerHeader& header = start.header;
  return header.tag == Algorithm::kTag && header.planes == algorithm.planes() &&
         header.non_finite <= 1 && header.elements == static_cast<std::uint32_t>(elements) &&
         (header.non_finite == 1 || algorithm.plausible(start.wire));
}

/// True if a message and, with error feedback, all its levels are finite. A program may produce
/// infinities from finite gradients; the slice is then treated as non-finite.
template <class Algorithm>
HIPRESS_LANES bool can_be_sent(const Algorithm& algorithm, const typename Algorithm::Wire& wire,
                               std::int64_t elements) {
  if (!Algorithm::finite(wire)) return false;
  if constexpr (Algorithm::kErrorFeedback) {
    const auto level = algorithm.levels(wire, elements);
    for (int code = 0; code < 1 << algorithm.planes(); ++code) {
      if (!is_finite(level(code))) return false;
    }
  }
  return true;
}

template <int kPlanes, class Levels>
HIPRESS_LANES void fill_levels(const Levels& level, float* levels) {
  for (int code = 0; code < 1 << kPlanes; ++code) levels[code] = level(code);
}

/// True if the values that were encoded last (gradient plus residual) may be stored instead of the
/// new residual; the next encode subtracts their decoded message (see Deferred). This saves error
/// feedback its second pass over the slice.
template <class Algorithm>
inline constexpr bool kDeferrable = Algorithm::kCodesByValueAlone&& Algorithm::kPasses == 1 &&
                                    Algorithm::kCodesAfter == 0 &&
                                    sizeof(typename Algorithm::Wire) <= sizeof(Deferred::wire);

}  // namespace hipress::kernels
