#pragma once

#include <cstdint>

#include "kernels/cuda/batch.hpp"

/// Collective operations of a warp or a thread block.
namespace hipress::kernels {

constexpr unsigned kAllLanes = 0xffffffffu;

/// Bitwise OR of all lanes' flags, on every lane (__reduce_or_sync needs sm_80).
__device__ inline std::uint32_t or_of_warp(std::uint32_t flags) {
  for (int by = kWarpThreads / 2; by > 0; by /= 2) flags |= __shfl_xor_sync(kAllLanes, flags, by);
  return flags;
}

__device__ inline std::uint32_t sum_of_warp(std::uint32_t value) {
  for (int by = kWarpThreads / 2; by > 0; by /= 2) value += __shfl_xor_sync(kAllLanes, value, by);
  return value;
}

/// Exclusive prefix sum over the thread block; `total` becomes the sum of all. Called by the whole
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

/// Counterpart of atomicAdd for std::uint64_t, which CUDA's atomics lack.
__device__ inline std::uint64_t add_atomically(std::uint64_t& to, std::uint64_t value) {
  static_assert(sizeof(unsigned long long) == sizeof to);
  return atomicAdd(reinterpret_cast<unsigned long long*>(&to), value);
}

__device__ inline void or_atomically(std::uint64_t& to, std::uint64_t bits) {
  atomicOr(reinterpret_cast<unsigned long long*>(&to), static_cast<unsigned long long>(bits));
}

}  // namespace hipress::kernels
