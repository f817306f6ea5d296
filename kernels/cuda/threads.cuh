#pragma once

#include <cstdint>

#include "kernels/cuda/batch.hpp"

/// What the threads of a warp or of a block find out together.
namespace hipress::kernels {

constexpr unsigned kAllLanes = 0xffffffffu;

/// The | of all lanes' flags (__reduce_or_sync needs sm_80), for every lane.
__device__ inline std::uint32_t or_of_warp(std::uint32_t flags) {
  for (int by = kWarpThreads / 2; by > 0; by /= 2) flags |= __shfl_xor_sync(kAllLanes, flags, by);
  return flags;
}

__device__ inline std::uint32_t sum_of_warp(std::uint32_t value) {
  for (int by = kWarpThreads / 2; by > 0; by /= 2) value += __shfl_xor_sync(kAllLanes, value, by);
  return value;
}

/// The sum over the block's threads before this one; `total` becomes that of all. For the whole
/// thread block.
__device__ inline std::uint64_t sum_before(std::uint64_t value, std::uint64_t& total) {
  __shared__ std::uint64_t of_warp[kWarpsPerBlock];
  const int lane = threadIdx.x % kWarpThreads, warp = threadIdx.x / kWarpThreads;
  std::uint64_t sum = value;
  for (int by = 1; by < kWarpThreads; by *= 2) {
    const std::uint64_t left = __shfl_up_sync(kAllLanes, sum, by);
    if (lane >= by) sum += left;
  }
  if (lane == kWarpThreads - 1) of_warp[warp] = sum;
  __syncthreads();
  std::uint64_t before = sum - value;
  total = 0;
  for (int i = 0; i < kWarpsPerBlock; ++i) {
    if (i < warp) before += of_warp[i];
    total += of_warp[i];
  }
  __syncthreads();
  return before;
}

/// Atomics know no std::uint64_t.
__device__ inline std::uint64_t add_atomically(std::uint64_t& to, std::uint64_t value) {
  static_assert(sizeof(unsigned long long) == sizeof to);
  return atomicAdd(reinterpret_cast<unsigned long long*>(&to), value);
}

__device__ inline void or_atomically(std::uint64_t& to, std::uint64_t bits) {
  atomicOr(reinterpret_cast<unsigned long long*>(&to), static_cast<unsigned long long>(bits));
}

}  // namespace hipress::kernels
