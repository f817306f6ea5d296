#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/codec/item.hpp"
#include "kernels/codec/lanes.hpp"
#include "kernels/codec/message.hpp"
#include "kernels/frames/draws.hpp"
#include "kernels/frames/reduction.hpp"

/// Quantisers: algorithms that give every element a code of a few bits and every code a level.
///
/// An algorithm says what to compute; the frames (host/quantizer_body.hpp, cuda/quantizer.cuh) do
/// loops, packing, error feedback, decoding and decode-and-add. hipress-compll writes algorithms
/// from programs; a hand-written one looks the same:
///
///   struct Example {
///     static constexpr std::uint16_t kTag;        // goes into every message
///     static constexpr int kMinPlanes, kMaxPlanes;  // bits per code, least and most
///     static constexpr int kPasses;               // measuring passes, at least 1
///     static constexpr int kCodesAfter;           // measuring passes before codes can be given
///     static constexpr bool kErrorFeedback;       // keeps a residual, unless switched off
///     static constexpr bool kCodesByValueAlone;   // a code depends on value and parameters only
///     struct Scalars;                             // what the program knows besides elements
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
///     static bool finite(const Wire&);            // whether its floats are finite
///     bool plausible(const Wire&) const;          // whether an encoder may have written it
///     auto levels(const Wire&, std::int64_t elements) const;  // an object: level = (*this)(code)
///   };
///
/// `element` is the index in the slice of the first lane's element.
namespace hipress::kernels {

/// Which measuring pass is meant.
template <int kNumber>
struct Pass {
  static constexpr int kValue = kNumber;
};

/// The first 8 bytes of a message; the algorithm's Wire follows, then the planes from a multiple of
/// 16 on.
struct QuantizerHeader {
  std::uint32_t elements = 0;  ///< of the slice, modulo 2^32
  std::uint16_t tag = 0;       ///< the algorithm's kTag
  std::uint8_t planes = 0;     ///< bits per code
  std::uint8_t non_finite =
      0;  ///< 1: the slice holds a NaN or infinity and decodes to NaN everywhere
};
static_assert(sizeof(QuantizerHeader) == 8);

/// Header and wire as they lie in a message.
template <class Algorithm>
struct MessageStart {
  QuantizerHeader header;
  alignas(8) typename Algorithm::Wire wire;
};

/// Where the planes of a message begin.
template <class Algorithm>
inline constexpr int kPlanesOffset = (static_cast<int>(sizeof(MessageStart<Algorithm>)) + 15) / 16 *
                                     16;

/// Bytes of the message of a slice; 0 for 0 elements.
HIPRESS_LANES std::int64_t quantizer_message_bytes(std::int64_t elements, int planes,
                                                   int planes_offset) {
  return elements <= 0 ? 0 : planes_offset + words_of(elements) * 4 * planes;
}

/// The start of a message is one that the algorithm wrote for a slice of `elements` elements.
template <class Algorithm>
HIPRESS_LANES bool fits(const MessageStart<Algorithm>& start, const Algorithm& algorithm,
                        std::int64_t elements) {
  const QuantizerHeader& header = start.header;
  return header.tag == Algorithm::kTag && header.planes == algorithm.planes() &&
         header.non_finite <= 1 && header.elements == static_cast<std::uint32_t>(elements) &&
         (header.non_finite == 1 || algorithm.plausible(start.wire));
}

/// Whether a message can be sent: it, and what error feedback takes off, is finite. What a program
/// makes of finite gradients may be neither; then the slice is treated as one that is not finite.
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

/// The level of every code.
template <int kPlanes, class Levels>
HIPRESS_LANES void fill_levels(const Levels& level, float* levels) {
  for (int code = 0; code < 1 << kPlanes; ++code) levels[code] = level(code);
}

/// Whether a residual may be kept as the value v that was encoded last, to be corrected by that
/// message's levels when it is read next. Saves error feedback its second pass over the slice.
template <class Algorithm>
inline constexpr bool kDeferrable = Algorithm::kCodesByValueAlone&& Algorithm::kPasses == 1 &&
                                    Algorithm::kCodesAfter == 0 &&
                                    sizeof(typename Algorithm::Wire) <= sizeof(Deferred::wire);

}  // namespace hipress::kernels
