#pragma once

#include "kernels/cuda/batch.hpp"
#include "kernels/cuda/sparsifier_kernels.hpp"
#include "kernels/cuda/threads.cuh"
#include "kernels/frames/draws.hpp"
#include "kernels/frames/sparsifier.hpp"

/// A sparsifier encodes on a GPU in a sequence of kernels:
///
///   look           only with states: checks that every input is finite, before anything is written
///   sample         picks a threshold slightly below the smallest entry to send
///   collect        updates states, and lists the entries that reach the threshold, tile by tile.
///                  Without states, it also makes the check of `look`.
///   count_digits,  find the smallest entry that is sent, by histograms of the magnitudes' digits,
///   conclude_digit the highest digit first
///   tally, place   count the entries that each tile sends, and place its first one in the message
///   write          writes the message, and sets states to 0 where an entry is sent
///
/// From count_digits on, a slice's entries come from the list. They come from the whole slice
/// instead if the list is incomplete (the threshold was too high or too low), or if a sample would
/// not help (few elements, or most are sent). The message is the same. The CPU's hint in
/// State::deferred (SparsifierHint) is neither used nor changed, because a sample is cheap on a
/// GPU.
namespace hipress::kernels {

template <class Algorithm>
using SelectionOf = decltype(std::declval<const Algorithm&>().selection(0));

/// Entries of a slice. kKept: the slice has states.
template <class Algorithm, bool kKept>
struct SliceEntries {
  static constexpr int kArrays = kKept ? kSparsifierArrays<Algorithm> : 0;
  static constexpr int kResidual = Algorithm::kErrorFeedback ? 1 : 0;
  static constexpr int kMaxArrays =
      kSparsifierArrays<Algorithm> > 0 ? kSparsifierArrays<Algorithm> : 1;

  const SparsifierSlice& slice;
  const SelectionOf<Algorithm> selection;

  /// Computes an element's entry, the value to send if it is selected; updates its `states`.
  __device__ float of(float input, float (&states)[kMaxArrays]) const {
    const float value = slice.rule(input, kResidual == 1 ? states[0] : 0.0f);
    if (kResidual == 1) states[0] = value;
    return selection.template of<float>(value, states + kResidual);
  }

  /// Entry of an element before the states in memory are updated; does not change them.
  __device__ float before(std::int64_t element) const {
    float states[kMaxArrays] = {};
    for (int i = 0; i < kArrays; ++i) states[i] = slice.states[i * slice.stride + element];
    return of(load_value(slice.values, slice.type, element), states);
  }

  /// Entry of an element after the states in memory are updated.
  __device__ float now(std::int64_t element) const {
    if constexpr (kKept) return slice.states[kScoreArray<Algorithm> * slice.stride + element];
    return before(element);
  }
};

/// Calls `function(entries)` with the slice's SliceEntries.
template <class Algorithm, class Function>
__device__ void with_entries(const Algorithm& algorithm, const SparsifierSlice& slice,
                             const Function& function) {
  const auto selection = algorithm.selection(slice.elements);
  if constexpr (kSparsifierArrays < Algorithm >> 0) {
    if (slice.states != nullptr) return function(SliceEntries<Algorithm, true>{slice, selection});
  }
  function(SliceEntries<Algorithm, false>{slice, selection});
}

/// Bit i is set if state array i becomes 0 where an entry is sent.
template <class Algorithm>
HIPRESS_LANES constexpr std::uint64_t cleared_arrays() {
  constexpr int kResidual = Algorithm::kErrorFeedback ? 1 : 0;
  std::uint64_t cleared = kResidual;
  for (int i = 0; i < Algorithm::kStates; ++i) {
    if (Algorithm::kClears[i]) cleared |= std::uint64_t{1} << (i + kResidual);
  }
  return cleared;
}

template <class Algorithm>
__device__ bool keeps_states(const SparsifierSlice& slice) {
  return kSparsifierArrays < Algorithm >> 0 && slice.states != nullptr;
}

/// True if the slice is finite and sends at least one entry.
template <class Algorithm>
__device__ bool sends(const Algorithm& algorithm, const SparsifierSlice& slice) {
  return slice.work->non_finite == 0 && algorithm.count(slice.elements) > 0;
}

/// True if the list holds all entries that may be sent.
template <class Algorithm>
__device__ bool list_suffices(const Algorithm& algorithm, const SparsifierSlice& slice) {
  const SparsifierWork& work = *slice.work;
  const auto count = static_cast<std::uint64_t>(algorithm.count(slice.elements));
  return slice.sample_rank > 0 && work.collected <= static_cast<std::uint64_t>(slice.capacity) &&
         (work.collected >= count || work.threshold <= 1);
}

// ---- before states are updated ----

inline constexpr int kRowsAtOnce = 8;

/// Kernel `look`: finds inputs that are not finite in slices with states. One warp per tile.
template <class Algorithm>
__global__ void look_for_non_finite(const Algorithm, const Batch<SparsifierSlice> batch) {
  const SparsifierSlice& slice = batch.slice_of(blockIdx.x);
  const std::int64_t tile = tile_of_warp(slice);
  if (!keeps_states<Algorithm>(slice) || tile * kTileElements >= slice.elements) return;
  const int lane = threadIdx.x % kWarpThreads;
  float inputs[kTileWords];
  load_rows(slice.values, slice.type, tile * kTileElements + lane, kWordElements, slice.elements,
            inputs);
  std::uint32_t flags = 0;
#pragma unroll
  for (const float input : inputs) flags |= non_finite_flag(input);
  flags = or_of_warp(flags);
  if (lane == 0 && has_bit(flags, 0x80000000u)) atomicOr(&slice.work->non_finite, 1u);
}

struct KeyDigit {
  int shift, bins;

  __device__ static KeyDigit of(int digit) {
    return {digit == 0 ? 20 : digit == 1 ? 10 : 0, digit == 0 ? 2048 : 1024};
  }
  /// True if the digits of `key` above this one are those of `known`.
  __device__ bool continues(std::uint32_t key, std::uint32_t known) const {
    return shift == 20 || (key ^ known) >> (shift + 10) == 0;
  }
  __device__ std::uint32_t bin(std::uint32_t key) const {
    return key >> shift & static_cast<std::uint32_t>(bins - 1);
  }
};

/// Finds the bin of the `rank`-th largest key of a histogram; `rank` becomes the key's rank in the
/// bin. Called by the whole thread block; the histogram must have at least `rank` keys.
template <class Count>
__device__ std::uint32_t bin_of_rank(const Count* histogram, int bins, std::uint64_t& rank) {
  __shared__ std::uint64_t rank_in_bin;
  __shared__ std::uint32_t bin_found;
  const int mine = bins / kThreadsPerBlock;
  const int top = bins - 1 - static_cast<int>(threadIdx.x) * mine;
  std::uint64_t sum = 0, total = 0;
  for (int i = 0; i < mine; ++i) sum += histogram[top - i];
  const std::uint64_t before = sum_before(sum, total);
  if (before < rank && rank <= before + sum) {
    std::uint64_t left = rank - before;
    int bin = top;
    while (histogram[bin] < left) left -= histogram[bin--];
    rank_in_bin = left;
    bin_found = static_cast<std::uint32_t>(bin);
  }
  __syncthreads();
  rank = rank_in_bin;
  const std::uint32_t bin = bin_found;
  __syncthreads();
  return bin;
}

/// Kernel `sample`: estimates the threshold from a sample; entries at or above it are listed. It is
/// at least 1, so that zeros are never listed. One thread block per slice.
template <class Algorithm>
__global__ void sample_entries(const Algorithm algorithm, const Batch<SparsifierSlice> batch) {
  constexpr int kSample = static_cast<int>(SelectionPlan::kSample);
  const SparsifierSlice& slice = batch.slices[blockIdx.x];
  if (slice.sample_rank == 0) return;
  __shared__ std::uint32_t keys[kSample];
  __shared__ std::uint32_t histogram[kMaxKeyBins];
  with_entries(algorithm, slice, [&](const auto& entries) {
    const std::int64_t part = slice.elements / kSample;
#pragma unroll 4
    for (int i = threadIdx.x; i < kSample; i += kThreadsPerBlock) {
      const auto within = static_cast<std::int64_t>(mix_64(static_cast<std::uint64_t>(i)) %
                                                    static_cast<std::uint64_t>(part));
      keys[i] = magnitude_key(entries.before(i * part + within));
    }
  });
  std::uint32_t found = 0;
  auto rank = static_cast<std::uint64_t>(slice.sample_rank);
  for (int number = 0; number < kKeyDigits; ++number) {
    const KeyDigit digit = KeyDigit::of(number);
    for (int i = threadIdx.x; i < digit.bins; i += kThreadsPerBlock) histogram[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < kSample; i += kThreadsPerBlock) {
      if (digit.continues(keys[i], found)) atomicAdd(&histogram[digit.bin(keys[i])], 1u);
    }
    __syncthreads();
    found |= bin_of_rank(histogram, digit.bins, rank) << digit.shift;
  }
  if (threadIdx.x == 0) slice.work->threshold = found < 1 ? 1 : found;
}

// ---- the pass that updates states ----

/// Updates the states of this warp's tile. Bit r of the result is set if the lane's element of row
/// r reaches the threshold. Adds the inputs' non_finite_flags to `flags`.
template <class Algorithm, bool kKept>
__device__ std::uint32_t bring_up_to_date(const SliceEntries<Algorithm, kKept>& entries,
                                          std::int64_t tile, std::uint32_t threshold,
                                          std::uint32_t& flags) {
  using Entries = SliceEntries<Algorithm, kKept>;
  const SparsifierSlice& slice = entries.slice;
  std::uint32_t reaching = 0;
  for (int first_row = 0; first_row < kTileWords; first_row += kRowsAtOnce) {
    const std::int64_t first =
        tile * kTileElements + first_row * kWordElements + threadIdx.x % kWarpThreads;
    float inputs[kRowsAtOnce];
    load_rows(slice.values, slice.type, first, kWordElements, slice.elements, inputs);
    float states[Entries::kMaxArrays][kRowsAtOnce] = {};
#pragma unroll
    for (int i = 0; i < Entries::kArrays; ++i) {
      load_rows(slice.states + i * slice.stride, ValueType::kFloat32, first, kWordElements,
                slice.elements, states[i]);
    }
#pragma unroll
    for (int row = 0; row < kRowsAtOnce; ++row) {
      flags |= non_finite_flag(inputs[row]);
      float state[Entries::kMaxArrays];
#pragma unroll
      for (int i = 0; i < Entries::kMaxArrays; ++i) state[i] = states[i][row];
      const bool reaches = magnitude_key(entries.of(inputs[row], state)) >= threshold;
      if (reaches && first + row * kWordElements < slice.elements) {
        reaching |= 1u << (first_row + row);
      }
#pragma unroll
      for (int i = 0; i < Entries::kMaxArrays; ++i) states[i][row] = state[i];
    }
#pragma unroll
    for (int i = 0; i < Entries::kArrays; ++i) {
      store_rows(slice.states + i * slice.stride, ValueType::kFloat32, first, kWordElements,
                 slice.elements, states[i]);
    }
  }
  return reaching;
}

/// Lists the entries of this warp's tile that reach the threshold. When the list is full, entries
/// are only counted.
template <class Algorithm, bool kKept>
__device__ void list_entries(const SliceEntries<Algorithm, kKept>& entries, std::int64_t tile,
                             std::uint32_t reaching) {
  const SparsifierSlice& slice = entries.slice;
  const int lane = threadIdx.x % kWarpThreads;
  const std::uint32_t count =
      sum_of_warp(static_cast<std::uint32_t>(__popc(static_cast<int>(reaching))));
  std::uint64_t to = 0;
  if (lane == 0) {
    if (count > 0) to = add_atomically(slice.work->collected, count);
    slice.tiles[tile].first = static_cast<std::uint32_t>(to);
    slice.tiles[tile].listed = count;
  }
  to = __shfl_sync(kAllLanes, to, 0);
  if (to + count > static_cast<std::uint64_t>(slice.capacity)) return;
  for (int row = 0; row < kTileWords; ++row) {
    const bool reaches = has_bit(reaching, 1u << row);
    const std::uint32_t lanes = __ballot_sync(kAllLanes, reaches);
    if (reaches) {
      const std::int64_t element = tile * kTileElements + row * kWordElements + lane;
      const std::uint64_t at =
          to + static_cast<std::uint64_t>(__popc(static_cast<int>(lanes & first_bits(lane))));
      slice.listed[at] = entries.now(element);
      slice.listed_at[at] = static_cast<std::uint32_t>(element);
    }
    to += static_cast<std::uint64_t>(__popc(static_cast<int>(lanes)));
  }
}

/// Kernel `collect`: updates states and lists entries. One warp per tile.
template <class Algorithm>
__global__ void collect_entries(const Algorithm algorithm, const Batch<SparsifierSlice> batch) {
  const SparsifierSlice& slice = batch.slice_of(blockIdx.x);
  const std::int64_t tile = tile_of_warp(slice);
  if (tile * kTileElements >= slice.elements) return;
  const bool keeps = keeps_states<Algorithm>(slice);
  if (keeps && slice.work->non_finite != 0) return;
  with_entries(algorithm, slice, [&](const auto& entries) {
    std::uint32_t flags = 0;
    const std::uint32_t reaching = bring_up_to_date(entries, tile, slice.work->threshold, flags);
    if (!keeps && has_bit(or_of_warp(flags), 0x80000000u)) {
      if (threadIdx.x % kWarpThreads == 0) atomicOr(&slice.work->non_finite, 1u);
      return;
    }
    if (slice.sample_rank > 0) list_entries(entries, tile, reaching);
  });
}

// ---- the smallest entry to send ----

inline constexpr std::int64_t kMinShare = 4096;

/// Adds to the histogram of digit `number` the keys whose higher digits are known. `shares` thread
/// blocks per slice, each for a share of the entries.
template <class Algorithm>
__global__ void count_digits(const Algorithm algorithm, const Batch<SparsifierSlice> batch,
                             int number, int shares) {
  const SparsifierSlice& slice = batch.slices[blockIdx.x / shares];
  SparsifierWork& work = *slice.work;
  if (!sends(algorithm, slice) || work.all != 0) return;
  const bool from_list = list_suffices(algorithm, slice);
  const std::int64_t entries_there =
      from_list ? static_cast<std::int64_t>(work.collected) : slice.elements;
  std::int64_t share = (entries_there + shares - 1) / shares;
  if (share < kMinShare) share = kMinShare;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x % shares) * share;
  const std::int64_t end = begin + share < entries_there ? begin + share : entries_there;
  if (begin >= end) return;

  __shared__ std::uint32_t histogram[kMaxKeyBins];
  const KeyDigit digit = KeyDigit::of(number);
  for (int i = threadIdx.x; i < digit.bins; i += kThreadsPerBlock) histogram[i] = 0;
  __syncthreads();
  const auto count = [&](float entry) {
    const std::uint32_t key = magnitude_key(entry);
    if (key != 0 && digit.continues(key, work.least)) atomicAdd(&histogram[digit.bin(key)], 1u);
  };
  if (from_list) {
#pragma unroll 4
    for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreadsPerBlock) {
      count(slice.listed[i]);
    }
  } else {
    with_entries(algorithm, slice, [&](const auto& entries) {
#pragma unroll 4
      for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreadsPerBlock) {
        count(entries.now(i));
      }
    });
  }
  __syncthreads();
  for (int i = threadIdx.x; i < digit.bins; i += kThreadsPerBlock) {
    if (histogram[i] != 0) add_atomically(work.histogram[number][i], histogram[i]);
  }
}

/// Finds one more digit of SparsifierWork::least; one thread block per slice.
template <class Algorithm>
__global__ void conclude_digit(const Algorithm algorithm, const Batch<SparsifierSlice> batch,
                               int number) {
  const SparsifierSlice& slice = batch.slices[blockIdx.x];
  SparsifierWork& work = *slice.work;
  if (!sends(algorithm, slice) || work.all != 0) return;
  const KeyDigit digit = KeyDigit::of(number);
  std::uint64_t rank = work.ties;
  if (number == 0) {
    rank = static_cast<std::uint64_t>(algorithm.count(slice.elements));
    std::uint64_t mine = 0, total = 0;
    for (int i = threadIdx.x; i < digit.bins; i += kThreadsPerBlock) mine += work.histogram[0][i];
    sum_before(mine, total);
    if (total <= rank) {
      if (threadIdx.x == 0) work.all = 1;
      return;
    }
  }
  const std::uint32_t bin = bin_of_rank(work.histogram[number], digit.bins, rank);
  if (threadIdx.x == 0) {
    work.least |= bin << digit.shift;
    work.ties = rank;
  }
}

// ---- the message ----

/// Calls `function(there, element, entry)` for the entries of this warp's tile, in order: the
/// listed ones if the list suffices, otherwise all. All lanes call it together; `there` is false on
/// lanes without an entry.
template <class Algorithm, class Function>
__device__ void for_each_entry(const Algorithm& algorithm, const SparsifierSlice& slice,
                               std::int64_t tile, const Function& function) {
  const int lane = threadIdx.x % kWarpThreads;
  if (list_suffices(algorithm, slice)) {
    const SparsifierTile& list = slice.tiles[tile];
    for (std::uint32_t first = 0; first < list.listed; first += kWarpThreads) {
      const bool there = first + lane < list.listed;
      const std::uint64_t at = std::uint64_t{list.first} + (there ? first + lane : 0);
      function(there, static_cast<std::int64_t>(slice.listed_at[at]), slice.listed[at]);
    }
    return;
  }
  with_entries(algorithm, slice, [&](const auto& entries) {
#pragma unroll 4
    for (int row = 0; row < kTileWords; ++row) {
      const std::int64_t element = tile * kTileElements + row * kWordElements + lane;
      const bool there = element < slice.elements;
      function(there, element, there ? entries.now(element) : 0.0f);
    }
  });
}

/// Counts the entries of a tile above SparsifierWork::least and equal to it; one warp per tile.
template <class Algorithm>
__global__ void tally_tiles(const Algorithm algorithm, const Batch<SparsifierSlice> batch) {
  const SparsifierSlice& slice = batch.slice_of(blockIdx.x);
  if (!sends(algorithm, slice)) return;
  const std::uint32_t least = slice.work->least;
  const std::int64_t tile = tile_of_warp(slice);
  const int warp = threadIdx.x / kWarpThreads;
  __shared__ std::uint32_t larger_of[kWarpsPerBlock], ties_of[kWarpsPerBlock];
  std::uint32_t larger = 0, ties = 0;
  if (tile * kTileElements < slice.elements) {
    for_each_entry(algorithm, slice, tile, [&](bool there, std::int64_t, float entry) {
      const std::uint32_t key = there ? magnitude_key(entry) : 0;
      larger += key > least ? 1 : 0;
      ties += key == least && key != 0 ? 1 : 0;
    });
    larger = sum_of_warp(larger);
    ties = sum_of_warp(ties);
    if (threadIdx.x % kWarpThreads == 0) {
      slice.tiles[tile].larger = larger;
      slice.tiles[tile].ties = ties;
    }
  }
  if (threadIdx.x % kWarpThreads == 0) {
    larger_of[warp] = larger;
    ties_of[warp] = ties;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  SparsifierBlock sum = {0, 0};
  for (int i = 0; i < kWarpsPerBlock; ++i) {
    sum.larger += larger_of[i];
    sum.ties += ties_of[i];
  }
  slice.blocks[blockIdx.x - slice.first_block] = sum;
}

/// Replaces each thread block's counts by the sums over the slice's earlier thread blocks, and
/// computes SparsifierWork::sent. One thread block per slice.
template <class Algorithm>
__global__ void place_blocks(const Algorithm algorithm, const Batch<SparsifierSlice> batch) {
  const SparsifierSlice& slice = batch.slices[blockIdx.x];
  if (!sends(algorithm, slice)) return;
  constexpr int kEach = 8;  // consecutive blocks per thread
  const std::int64_t blocks = (slice.elements + kElementsPerBlock - 1) / kElementsPerBlock;
  SparsifierBlock before = {0, 0};
  for (std::int64_t first = 0; first < blocks; first += kEach * kThreadsPerBlock) {
    const std::int64_t mine = first + static_cast<std::int64_t>(threadIdx.x) * kEach;
    SparsifierBlock part[kEach] = {};
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (mine + i < blocks) part[i] = slice.blocks[mine + i];
    }
    SparsifierBlock sum = {0, 0}, total = {0, 0};
#pragma unroll
    for (const SparsifierBlock& block : part) {
      sum.larger += block.larger;
      sum.ties += block.ties;
    }
    SparsifierBlock to = {before.larger + sum_before(sum.larger, total.larger),
                          before.ties + sum_before(sum.ties, total.ties)};
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (mine + i < blocks) slice.blocks[mine + i] = to;
      to.larger += part[i].larger;
      to.ties += part[i].ties;
    }
    before.larger += total.larger;
    before.ties += total.ties;
  }
  if (threadIdx.x == 0) {
    const SparsifierWork& work = *slice.work;
    slice.work->sent = before.larger + (before.ties < work.ties ? before.ties : work.ties);
  }
}

/// The entries of a message to write.
struct WrittenEntries {
  std::uint32_t* indices;
  float* values;
  std::int64_t room;  ///< room in each of the two arrays, in entries

  __device__ static WrittenEntries of(std::byte* message, std::int64_t count) {
    const std::int64_t bytes = sparsifier_array_bytes(count);
    std::byte* const arrays = message + sizeof(SparsifierHeader);
    return {reinterpret_cast<std::uint32_t*>(arrays), reinterpret_cast<float*>(arrays + bytes),
            bytes / 4};
  }
};

/// Writes the entries of this warp's tile.
template <class Algorithm>
__device__ void write_tile(const Algorithm& algorithm, const SparsifierSlice& slice,
                           std::int64_t tile, const WrittenEntries& to) {
  static_assert(kSparsifierArrays<Algorithm> <= 64);
  constexpr std::uint64_t kCleared = cleared_arrays<Algorithm>();
  const SparsifierWork& work = *slice.work;
  const std::uint32_t least = work.least;
  const std::uint32_t lanes_before = first_bits(threadIdx.x % kWarpThreads);
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) - slice.first_block;
  std::uint64_t larger = slice.blocks[block].larger, ties = slice.blocks[block].ties;
  for (std::int64_t i = block * kWarpsPerBlock; i < tile; ++i) {
    larger += slice.tiles[i].larger;
    ties += slice.tiles[i].ties;
  }
  const SparsifierTile& mine = slice.tiles[tile];
  if (mine.larger == 0 && (mine.ties == 0 || ties >= work.ties)) return;
  const bool keeps = keeps_states<Algorithm>(slice);
  for_each_entry(algorithm, slice, tile, [&](bool there, std::int64_t element, float entry) {
    const std::uint32_t key = there ? magnitude_key(entry) : 0;
    const bool is_larger = key > least, is_tie = key == least && key != 0;
    const std::uint32_t larger_lanes = __ballot_sync(kAllLanes, is_larger);
    const std::uint32_t tie_lanes = __ballot_sync(kAllLanes, is_tie);
    const auto among = [](std::uint32_t lanes) {
      return static_cast<std::uint64_t>(__popc(static_cast<int>(lanes)));
    };
    const std::uint64_t ties_before = ties + among(tie_lanes & lanes_before);
    if (is_larger || (is_tie && ties_before < work.ties)) {
      const std::uint64_t at = larger + among(larger_lanes & lanes_before) +
                               (ties_before < work.ties ? ties_before : work.ties);
      to.indices[at] = static_cast<std::uint32_t>(element);
      to.values[at] = entry;
#pragma unroll
      for (int i = 0; i < kSparsifierArrays<Algorithm>; ++i) {
        if (keeps && (kCleared >> i & 1) != 0) slice.states[i * slice.stride + element] = 0;
      }
    }
    larger += among(larger_lanes);
    ties += among(tie_lanes);
  });
}

/// Writes the message: one warp per tile. All warps clear unused room.
template <class Algorithm>
__global__ void write_entries(const Algorithm algorithm, const Batch<SparsifierSlice> batch) {
  const SparsifierSlice& slice = batch.slice_of(blockIdx.x);
  const std::int64_t count = algorithm.count(slice.elements);
  const WrittenEntries to = WrittenEntries::of(slice.message, count);
  const bool any = sends(algorithm, slice);
  const auto sent = static_cast<std::int64_t>(any ? slice.work->sent : 0);
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) - slice.first_block;
  const std::int64_t blocks = (slice.elements + kElementsPerBlock - 1) / kElementsPerBlock;
  if (block == 0 && threadIdx.x == 0) {
    SparsifierHeader start;
    start.header.elements = static_cast<std::uint32_t>(slice.elements);
    start.header.tag = Algorithm::kTag;
    start.header.non_finite = slice.work->non_finite != 0 ? 1 : 0;
    start.count = static_cast<std::uint32_t>(sent);
    *reinterpret_cast<SparsifierHeader*>(slice.message) = start;
    if (slice.message_bytes != nullptr) {
      *slice.message_bytes = sparsifier_message_bytes(slice.elements, count);
    }
  }
  for (std::int64_t i = sent + block * kThreadsPerBlock + threadIdx.x; i < to.room;
       i += blocks * kThreadsPerBlock) {
    to.indices[i] = 0;
    to.values[i] = 0;
  }
  const std::int64_t tile = tile_of_warp(slice);
  if (any && tile * kTileElements < slice.elements) write_tile(algorithm, slice, tile, to);
}

}  // namespace hipress::kernels
