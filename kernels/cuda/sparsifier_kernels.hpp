#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/codec/item.hpp"
#include "kernels/codec/slice.hpp"
#include "kernels/cuda/quantizer_kernels.hpp"

/// What the launcher of a sparsifier's kernels (cuda/sparsifier.cu) and the kernels themselves
/// (cuda/sparsifier.cuh) agree on.
namespace hipress::kernels {

/// Magnitudes have 31 bits: digits of 11, 10 and 10.
inline constexpr int kKeyDigits = 3;
inline constexpr int kMaxKeyBins = 2048;

/// What is known of a slice between the kernels. All zeros before the first.
struct SparsifierWork {
  std::uint64_t histogram[kKeyDigits][kMaxKeyBins];  ///< of a digit, below the digits known by then
  std::uint64_t collected;   ///< entries of at least `threshold`, listed or not
  std::uint64_t ties;        ///< how many of the entries that equal `least` are sent
  std::uint64_t sent;        ///< entries
  std::uint32_t threshold;   ///< magnitude_key from which on entries are listed
  std::uint32_t least;       ///< magnitude_key of the smallest entry sent, as far as it is known
  std::uint32_t all;         ///< 1: every entry but zeros is sent, and `least` is 0
  std::uint32_t non_finite;  ///< 1: an input is no finite number
};

/// What is known of a tile.
struct SparsifierTile {
  std::uint32_t first, listed;  ///< where its entries lie in the list
  std::uint32_t larger, ties;   ///< entries above `least`, and equal to it
};

/// Of a thread block's tiles together; then of all thread blocks before it in the slice.
struct SparsifierBlock {
  std::uint64_t larger, ties;
};

/// One slice that is encoded.
struct SparsifierSlice {
  const void* values;
  std::int64_t elements;
  ValueType type;
  ValueRule rule;
  float* states;  ///< null: they are 0 and not kept
  std::int64_t stride;
  std::byte* message;
  std::int64_t* message_bytes;
  std::int64_t sample_rank;  ///< as in SelectionPlan; 0: there is no list
  std::int64_t capacity;     ///< of the list
  SparsifierWork* work;
  SparsifierTile* tiles;
  SparsifierBlock* blocks;
  float* listed;             ///< entries; a tile's lie together, in their order
  std::uint32_t* listed_at;  ///< their elements
  std::int64_t first_block;
};

/// One slice that is decoded.
struct SparsifierDecodeSlice : DecodeSlice {
  /// The item's, set if any of its messages is damaged or of a slice that was not finite.
  std::uint32_t* spoiled;
};

/// One sparsifier's kernels: functions or cudaKernel_t.
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
