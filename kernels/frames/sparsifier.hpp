#pragma once

#include <cstdint>

#include "kernels/codec/item.hpp"
#include "kernels/codec/lanes.hpp"
#include "kernels/codec/slice.hpp"
#include "kernels/frames/quantizer.hpp"

/// Sparsifiers: algorithms that send the entries of a slice that are largest in magnitude, as
/// indices and values (DGC, GradDrop), and keep the others.
///
/// An algorithm says how an entry comes about; the frames (host/sparsifier_body.hpp,
/// cuda/sparsifier.cuh) find the largest and write the message. hipress-compll writes algorithms
/// from programs:
///
///   struct Example {
///     static constexpr std::uint16_t kTag;      // goes into every message
///     static constexpr int kStates;             // arrays kept, without the residual
///     static constexpr bool kErrorFeedback;     // keeps a residual, before the other arrays
///     static constexpr int kScore;              // state array that `of` leaves its result in; -1:
///                                               // none
///     static constexpr bool kClears[];          // by state array: 0 where an entry is sent
///     explicit Example(const double* values);   // parameters, in the order of the registry
///     std::int64_t count(std::int64_t elements) const;  // entries sent at most
///     auto selection(std::int64_t elements) const;
///         // an object with `F of(F value, F* state) const`: brings the states of an element up to
///         // date and returns its entry; and `F first(F value) const`: the same where all states
///         // are 0, but for the sign of a zero
///   };
///
/// Exactly the `count` entries largest in magnitude are sent, in index order; of equal entries,
/// those with lower indices; never a zero or a number that is not finite. So a message does not
/// depend on how they were found: what an encode knows from the last step only makes it faster.
/// Adding a message changes the elements of its entries alone: a -0 elsewhere stays -0.
namespace hipress::kernels {

/// Indices and counts in messages have 32 bits.
inline constexpr std::int64_t kMaxSparsifierElements = (std::int64_t{1} << 32) - 1;

/// The first 16 bytes of a message. Then, each with room for the most entries there can be, rounded
/// up to a multiple of 4: their indices (32 bits each, ascending) and their values (fp32).
struct SparsifierHeader {
  QuantizerHeader header;  ///< planes: 0
  std::uint32_t count = 0;
  std::uint32_t zero = 0;
};
static_assert(sizeof(SparsifierHeader) == 16);

/// Bytes of the indices, or of the values, of `count` entries.
HIPRESS_LANES std::int64_t sparsifier_array_bytes(std::int64_t count) {
  return (count + 3) / 4 * 16;
}

/// Bytes of the message of a slice; 0 for 0 elements.
HIPRESS_LANES std::int64_t sparsifier_message_bytes(std::int64_t elements, std::int64_t count) {
  return elements <= 0 ? 0
                       : static_cast<std::int64_t>(sizeof(SparsifierHeader)) +
                             2 * sparsifier_array_bytes(count);
}

/// Magnitudes in their order, as whole numbers; 0 for a zero and what is no finite number.
HIPRESS_LANES std::uint32_t magnitude_key(float value) {
  const std::uint32_t bits = as_bits(value) & 0x7fffffffu;
  return bits < 0x7f800000u ? bits : 0;
}

/// The lanes whose magnitude_key is at least that of `least`, which is more than 0.
template <class F>
HIPRESS_LANES MaskLanes<F> is_entry(F value, F least) {
  const F size = magnitude(value);
  return both(at_least(size, least), at_least(broadcast<F>(kLargest), size));
}

/// Arrays of state, the residual among them.
template <class Algorithm>
inline constexpr int kSparsifierArrays = Algorithm::kStates + (Algorithm::kErrorFeedback ? 1 : 0);

/// The array that holds the entries once states are up to date; -1: they must be worked out again.
template <class Algorithm>
inline constexpr int kScoreArray = Algorithm::kScore >= 0
                                       ? Algorithm::kScore + (Algorithm::kErrorFeedback ? 1 : 0)
                                   : Algorithm::kErrorFeedback ? 0
                                                               : -1;

/// What an encode remembers for the next one, in Deferred::wire.
struct SparsifierHint {
  static constexpr std::uint32_t kMagic = 0x4c455355u;
  std::uint32_t magic = 0;
  std::uint32_t threshold = 0;  ///< magnitude_key from which on to collect; 0: not known
  std::uint32_t least = 0;      ///< that of the smallest entry sent; 0: not known
};

/// How many entries a first pass collects: those of at least a threshold that is below the
/// count-th largest with near certainty, as a sample says.
struct SelectionPlan {
  static constexpr std::int64_t kSample = 8192;
  std::int64_t sample_rank = 0;  ///< the threshold is the sample's this-th largest; 0: no sample
  std::int64_t capacity = 0;     ///< entries that there is room for

  /// The sample has s = kSample · count / elements entries above the threshold sought, with a
  /// standard deviation below √s; four of those to either side.
  HIPRESS_LANES static SelectionPlan of(std::int64_t elements, std::int64_t count) {
    SelectionPlan plan;
    plan.capacity = elements;
    if (elements <= 2 * kSample) return plan;
    const double sought =
        static_cast<double>(kSample) * static_cast<double>(count) / static_cast<double>(elements);
    const double rank = sought + 4 * __builtin_sqrt(sought) + 8;
    const double most = rank + 4 * __builtin_sqrt(rank) + 8;
    if (most * 2 > static_cast<double>(kSample)) return plan;
    plan.sample_rank = static_cast<std::int64_t>(rank);
    plan.capacity = static_cast<std::int64_t>(most * static_cast<double>(elements) /
                                              static_cast<double>(kSample)) +
                    2 * kWordElements;
    return plan;
  }
};

}  // namespace hipress::kernels
