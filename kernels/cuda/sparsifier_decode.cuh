#pragma once

#include "kernels/cuda/batch.hpp"
#include "kernels/cuda/sparsifier_kernels.hpp"
#include "kernels/cuda/threads.cuh"
#include "kernels/frames/sparsifier.hpp"

/// Decoding and adding of sparsifiers' messages on a GPU: check_messages checks every message
/// before decode_entries uses any.
namespace hipress::kernels {

/// The entries of a message; to be read only if the message is valid.
struct ReadEntries {
  const std::uint32_t* indices = nullptr;
  const float* values = nullptr;
  std::int64_t count = 0;

  template <class Algorithm>
  __device__ static ReadEntries of(const Algorithm& algorithm, const std::byte* message,
                                   std::int64_t elements) {
    const std::byte* const arrays = message + sizeof(SparsifierHeader);
    const std::int64_t most = algorithm.count(elements);
    const std::int64_t count = reinterpret_cast<const SparsifierHeader*>(message)->count;
    // Never more than the arrays hold, even if the header changed after check_messages().
    return {reinterpret_cast<const std::uint32_t*>(arrays),
            reinterpret_cast<const float*>(arrays + sparsifier_array_bytes(most)),
            count < most ? count : most};
  }

  /// Position of the first entry whose index is at least `index`; called by a whole warp.
  __device__ std::int64_t first_from(std::int64_t index) const {
    std::int64_t begin = 0, end = count;
    while (begin < end) {
      const std::int64_t step = (end - begin + kWarpThreads - 1) / kWarpThreads;
      const std::int64_t probe = begin + (threadIdx.x % kWarpThreads + 1) * step - 1;
      const bool below = probe < end && static_cast<std::int64_t>(indices[probe]) < index;
      const int steps = __popc(static_cast<int>(__ballot_sync(kAllLanes, below)));
      begin += steps * step;
      if (begin + step - 1 < end) end = begin + step - 1;
    }
    return begin;
  }
};

/// True if the message begins as an encode of a finite slice of `elements` elements.
template <class Algorithm>
__device__ bool starts_soundly(const Algorithm& algorithm, const std::byte* message,
                               std::int64_t elements) {
  const auto& start = *reinterpret_cast<const SparsifierHeader*>(message);
  return start.header.tag == Algorithm::kTag && start.header.planes == 0 &&
         start.header.non_finite == 0 &&
         static_cast<std::int64_t>(start.count) <= algorithm.count(elements) &&
         start.header.elements == static_cast<std::uint32_t>(elements);
}

/// Checks all messages; `shares` thread blocks per slice, each of which checks a share of every
/// message.
template <class Algorithm>
__global__ void check_messages(const Algorithm algorithm, const Batch<SparsifierDecodeSlice> batch,
                               int shares) {
  const SparsifierDecodeSlice& slice = batch.slices[blockIdx.x / shares];
  bool sound = true;
  for (int message = 0; message < slice.count; ++message) {
    const std::byte* const bytes = slice.messages[message];
    if (bytes == nullptr || !starts_soundly(algorithm, bytes, slice.elements)) {
      sound = false;
      continue;
    }
    const ReadEntries entries = ReadEntries::of(algorithm, bytes, slice.elements);
    for (std::int64_t i =
             static_cast<std::int64_t>(blockIdx.x % shares) * kThreadsPerBlock + threadIdx.x;
         i < entries.count; i += std::int64_t{shares} * kThreadsPerBlock) {
      const std::uint32_t index = entries.indices[i];
      sound = sound && static_cast<std::int64_t>(index) < slice.elements &&
              (i == 0 || entries.indices[i - 1] < index) && is_finite(entries.values[i]);
    }
  }
  if (!sound) atomicOr(slice.spoiled, 1u);
}

/// Calls `function(i)` for i < count, neighbouring i on neighbouring threads of the block.
template <class Function>
__device__ void for_each_in_block(int count, const Function& function) {
#pragma unroll 8
  for (int i = threadIdx.x; i < count; i += kThreadsPerBlock) function(i);
}

/// Adds up messages, kElementsPerBlock elements per thread block, in shared memory. Reads and
/// writes only the elements in the messages, unless all elements change.
template <class Algorithm>
__global__ void decode_entries(const Algorithm algorithm,
                               const Batch<SparsifierDecodeSlice> batch) {
  static_assert(kMessagesPerLaunch <= kWarpsPerBlock);
  constexpr int kElements = static_cast<int>(kElementsPerBlock);
  __shared__ float sums[kElements];
  __shared__ std::uint32_t touched[kElements / kWordElements];
  __shared__ std::int64_t begins[kMessagesPerLaunch], ends[kMessagesPerLaunch];
  const SparsifierDecodeSlice& slice = batch.slice_of(blockIdx.x);
  const std::int64_t first =
      (static_cast<std::int64_t>(blockIdx.x) - slice.first_block) * kElementsPerBlock;
  const std::int64_t left = slice.elements - first;
  const int count = left < kElementsPerBlock ? static_cast<int>(left) : kElements;
  if (*slice.spoiled != 0) {
    for_each_in_block(
        count, [&](int i) { store_value(slice.values, slice.type, first + i, not_a_number()); });
    return;
  }

  const int warp = threadIdx.x / kWarpThreads;
  if (warp < slice.count) {
    const ReadEntries entries = ReadEntries::of(algorithm, slice.messages[warp], slice.elements);
    const std::int64_t begin = entries.first_from(first), end = entries.first_from(first + count);
    if (threadIdx.x % kWarpThreads == 0) {
      begins[warp] = begin;
      ends[warp] = end;
    }
  }
  const bool adds = slice.mode == DecodeMode::kAdd;
  const bool everything = !adds || slice.own_divisor != 1 || slice.sum_divisor != 1 ||
                          slice.read != slice.values || slice.read_type != slice.type;
  for (int i = threadIdx.x; i < kElements / kWordElements; i += kThreadsPerBlock) touched[i] = 0;
  if (everything) {
    with_value_type(slice.read_type, [&](auto type) {
      for_each_in_block(count, [&](int i) {
        float value = 0;
        if (adds) value = load_value(slice.read, decltype(type)::value, first + i);
        if (adds && slice.own_divisor != 1) value = value / slice.own_divisor;
        sums[i] = value;
      });
    });
  }
  __syncthreads();

  bool any = false;
  for (int message = 0; message < slice.count; ++message) {
    const ReadEntries entries = ReadEntries::of(algorithm, slice.messages[message], slice.elements);
    for (std::int64_t k = begins[message] + threadIdx.x; k < ends[message]; k += kThreadsPerBlock) {
      const std::int64_t within = static_cast<std::int64_t>(entries.indices[k]) - first;
      if (within < 0 || within >= count) continue;  // the index changed after the check
      const int i = static_cast<int>(within);
      if (!everything) {
        const std::uint32_t bit = 1u << i % kWordElements;
        if (!has_bit(atomicOr(&touched[i / kWordElements], bit), bit)) {
          sums[i] = load_value(slice.read, slice.read_type, first + i);
        }
      }
      sums[i] = adds ? sums[i] + entries.values[k] : entries.values[k];
    }
    any = any || begins[message] < ends[message];
    // Other threads may add the next message's entries to the same elements.
    __syncthreads();
  }
  if (!everything && !any) return;
  with_value_type(slice.type, [&](auto type) {
    for_each_in_block(count, [&](int i) {
      if (!everything && !has_bit(touched[i / kWordElements], 1u << i % kWordElements)) return;
      const float sum = adds && slice.sum_divisor != 1 ? sums[i] / slice.sum_divisor : sums[i];
      store_value(slice.values, decltype(type)::value, first + i, sum);
    });
  });
}

}  // namespace hipress::kernels
