#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/codec/item.hpp"
#include "kernels/codec/slice.hpp"
#include "kernels/cuda/quantizer_kernels.hpp"

/// Interface between the launcher of a sparsifier's kernels (cuda/sparsifier.cu) and the kernels
/// (cuda/sparsifier.cuh).
namespace hipress::kernels {

/// Radix selection: a magnitude_key has 31 bits, cut into digits of 11, 10 and 10 bits.
inline constexpr int kKeyDigits = 3;
inline constexpr int kMaxKeyBins = 2048;

/// State of a slice between the kernels; all zeros before the first.
struct SparsifierWork {
  /// Per digit: histogram of the keys whose higher digits are those of `least`.
  std::uint64_t histogram[kKeyDigits][kMaxKeyBins];
  std::uint64_t collected;   ///< number of entries of at least `threshold`, listed or not
  std::uint64_t ties;        ///< number of entries equal to `least` that are sent
  std::uint64_t sent;        ///< number of entries sent
  std::uint32_t threshold;   ///< smallest magnitude_key that is listed
  std::uint32_t least;       ///< magnitude_key of the smallest entry sent, found digit by digit
  std::uint32_t all;         ///< 1: all entries except zeros are sent, and `least` is 0
  std::uint32_t non_finite;  ///< 1: an input is not finite
};

/// State of a tile between the kernels.
struct SparsifierTile {
  std::uint32_t first, listed;  ///< position and number of its entries in the list
  std::uint32_t larger, ties;   ///< numbers of its entries above `least` and equal to it
};

/// Sums of SparsifierTile's counts over a thread block's tiles. place_blocks() replaces them by the
/// sums over all earlier thread blocks of the slice.
struct SparsifierBlock {
  std::uint64_t larger, ties;
};

struct SparsifierSlice {
  const void* values;
  std::int64_t elements;
  ValueType type;
  ValueRule rule;
  float* states;  ///< null if they are 0 and not kept
  std::int64_t stride;
  std::byte* message;
  std::int64_t* message_bytes;
  std::int64_t sample_rank;  ///< as in SelectionPlan; 0 if there is no list
  std::int64_t capacity;     ///< entries that the list has room for
  SparsifierWork* work;
  SparsifierTile* tiles;
  SparsifierBlock* blocks;
  float* listed;             ///< entries; those of a tile are contiguous and in order
  std::uint32_t* listed_at;  ///< their element indices
  std::int64_t first_block;
};

struct SparsifierDecodeSlice : DecodeSlice {
  /// One per item; set if any of its messages is damaged or comes from a non-finite slice.
  std::uint32_t* spoiled;
};

/// Kernels of one sparsifier, as functions or cudaKernel_t.
struct CudaSparsifierKernels {
  const void* look = nullptr;
  const void* sample = nullptr;
  const void* collect = nullptr;
  const void* count_digits = nullptr;
  const void* conclude_digit = nullptr;
  const void* tally = nullptr;
  const void* place = nullptr;
  const void* write = nullptr;
  const void* check = nullptr;
  const void* decode = nullptr;
};

}  // namespace hipress::kernels
