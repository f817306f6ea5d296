#pragma once

#include <cstdint>

#include "kernels/codec/item.hpp"
#include "kernels/codec/lanes.hpp"
#include "kernels/codec/slice.hpp"
#include "kernels/frames/quantizer.hpp"

/// Sparsifiers: algorithms that send the entries of a slice with the largest magnitudes, as indices
/// and values (DGC, GradDrop), and keep the other entries as state.
///
/// An algorithm computes the entries; the frames (host/sparsifier_body.hpp, cuda/sparsifier.cuh)
/// select the largest and write the message. hipress-compll writes algorithms from programs:
///
///   struct Example {
///     static constexpr std::uint16_t kTag;      // goes into every message
///     static constexpr int kStates;             // state arrays, without the residual
///     static constexpr bool kErrorFeedback;     // keeps a residual, before the other arrays
///     static constexpr int kScore;              // state array in which `of` leaves its
///                                               // result, or -1
///     static constexpr bool kClears[];          // by state array: set to 0 at sent entries
///     explicit Example(const double* values);   // parameters, in the order of the registry
///     std::int64_t count(std::int64_t elements) const;  // entries sent at most
///     auto selection(std::int64_t elements) const;
///         // an object with `F of(F value, F* state) const`, which updates an element's states
///         // and returns its entry; and `F first(F value) const`, which returns the same entry,
///         // except for the sign of a zero, if all states are 0
///   };
///
/// Exactly the `count` entries largest in magnitude are sent, in index order; lower indices win
/// ties. Zeros and non-finite entries are never sent. A message does not depend on how the entries
/// are selected: the last step's SparsifierHint only makes the selection faster. Adding a message
/// changes only its entries' elements: a -0 elsewhere stays -0.
namespace hipress::kernels {

/// Indices and counts in messages have 32 bits.
inline constexpr std::int64_t kMaxSparsifierElements = (std::int64_t{1} << 32) - 1;

/// First 16 bytes of a message. Indices (32 bits each, ascending) and values (fp32) follow, each
/// array with room for the maximal number of entries, rounded up to a multiple of 4.
struct SparsifierHeader {
  QuantizerHeader header;  ///< `planes` is 0
  std::uint32_t count = 0;
  std::uint32_t zero = 0;
};
static_assert(sizeof(SparsifierHeader) == 16);

/// Size of the indices, or of the values, of `count` entries, in bytes.
HIPRESS_LANES std::int64_t sparsifier_array_bytes(std::int64_t count) {
  return (count + 3) / 4 * 16;
}

/// Size of a slice's message, in bytes; 0 for 0 elements.
HIPRESS_LANES std::int64_t sparsifier_message_bytes(std::int64_t elements, std::int64_t count) {
  return elements <= 0 ? 0
                       : static_cast<std::int64_t>(sizeof(SparsifierHeader)) +
                             2 * sparsifier_array_bytes(count);
}

/// Integer key in the order of magnitudes; 0 for zeros and non-finite numbers.
HIPRESS_LANES std::uint32_t magnitude_key(float value) {
  const std::uint32_t bits = as_bits(value) & 0x7fffffffu;
  return bits < 0x7f800000u ? bits : 0;
}

/// Lanes whose magnitude_key is at least that of `least`, which must be more than 0.
template <class F>
HIPRESS_LANES MaskLanes<F> is_entry(F value, F least) {
  const F size = magnitude(value);
  return both(at_least(size, least), at_least(broadcast<F>(kLargest), size));
}

/// Number of state arrays, including the residual.
template <class Algorithm>
inline constexpr int kSparsifierArrays = Algorithm::kStates + (Algorithm::kErrorFeedback ? 1 : 0);

/// Index of the state array that holds the entries once states are up to date; -1 if they must be
/// computed again.
template <class Algorithm>
inline constexpr int kScoreArray = Algorithm::kScore >= 0
                                       ? Algorithm::kScore + (Algorithm::kErrorFeedback ? 1 : 0)
                                   : Algorithm::kErrorFeedback ? 0
                                                               : -1;

/// Hint of an encode for the next one, in Deferred::wire.
struct SparsifierHint {
  static constexpr std::uint32_t kMagic = 0x4c455355u;
  std::uint32_t magic = 0;
  std::uint32_t threshold = 0;  ///< smallest magnitude_key to collect; 0 if unknown
  std::uint32_t least = 0;      ///< magnitude_key of the smallest entry sent; 0 if unknown
};

/// Sizes of a first pass, which collects entries at or above a threshold. A sample sets the
/// threshold such that it is almost certainly below the count-th largest entry.
struct SelectionPlan {
  static constexpr std::int64_t kSample = 8192;
  /// Rank of the threshold in the sample, from the largest; 0 if there is no sample.
  std::int64_t sample_rank = 0;
  std::int64_t capacity = 0;  ///< maximal number of entries collected

  /// The sample has, on average, sought = kSample · count / elements entries above the exact
  /// threshold; the standard deviation is below √sought. The plan allows four of it either way.
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
