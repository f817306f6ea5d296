#pragma once

#ifndef __CUDACC_RTC__
#include <cuda_runtime.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#endif
#include <cstddef>
#include <cstdint>

#include "kernels/codec/item.hpp"
#include "kernels/frames/reduction.hpp"

/// How batches of slices reach a GPU: as kernel parameters, so that a launch needs neither a copy
/// nor device memory for them, and many small slices share one launch.
namespace hipress::kernels {

inline constexpr int kWarpThreads = 32;
inline constexpr int kWarpsPerBlock = 8;
inline constexpr int kThreadsPerBlock = kWarpThreads * kWarpsPerBlock;
/// One warp works on one tile, lane l on the elements whose number in their word is l.
inline constexpr std::int64_t kElementsPerBlock = std::int64_t{kWarpsPerBlock} * kTileElements;

/// Kernel parameters may be 4 KiB.
inline constexpr std::size_t kParameterBytes = 4096;

/// Slices that one launch serves. A Slice has `elements` and `first_block`, the number of thread
/// blocks that the slices before it have.
template <class Slice>
struct Batch {
  static constexpr int kMax = static_cast<int>((kParameterBytes - 64) / sizeof(Slice));

  Slice slices[kMax];
  int count = 0;
  std::int64_t blocks = 0;

  /// Adds a slice; false if there is no room.
  bool add(const Slice& slice) {
    if (count == kMax) return false;
    slices[count] = slice;
    slices[count].first_block = blocks;
    blocks += (slice.elements + kElementsPerBlock - 1) / kElementsPerBlock;
    ++count;
    return true;
  }

  /// The slice that a thread block works on.
  __device__ const Slice& slice_of(std::int64_t block) const {
    int i = count - 1;
    while (slices[i].first_block > block) --i;
    return slices[i];
  }
};

/// The tile of this warp within its slice.
template <class Slice>
__device__ std::int64_t tile_of_warp(const Slice& slice) {
  return (static_cast<std::int64_t>(blockIdx.x) - slice.first_block) * kWarpsPerBlock +
         threadIdx.x / kWarpThreads;
}

#ifndef __CUDACC_RTC__

inline void check_cuda(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
  }
}

/// A kernel as cudaLaunchKernel takes it.
template <class... Parameters>
const void* handle_of(void (*kernel)(Parameters...)) {
#ifdef HIPRESS_EMULATES_CUDA
  return emulation::handle_of(kernel);  // tests/kernels/emulation: keeps the kernel's type
#else
  return reinterpret_cast<const void*>(kernel);
#endif
}

/// Launches so many thread blocks of a kernel that takes `argument`.
template <class Argument>
void launch(void (*kernel)(Argument), std::int64_t blocks, Argument argument, cudaStream_t stream) {
  void* arguments[] = {&argument};
  check_cuda(cudaLaunchKernel(handle_of(kernel), dim3(static_cast<unsigned>(blocks)),
                              dim3(kThreadsPerBlock), arguments, 0, stream),
             "launching a codec kernel");
}

/// What an encode does about a slice without elements.
inline void encode_nothing(const EncodeItem& item, cudaStream_t stream) {
  if (item.message_bytes == nullptr) return;
  check_cuda(cudaMemsetAsync(item.message_bytes, 0, sizeof *item.message_bytes, stream),
             "encoding a slice without elements");
}

/// Calls `act(batch)`, which launches kernels, for all of `slices`, as many to a batch as there is
/// room for.
template <class Slice, class Act>
void for_each_batch(std::span<const Slice> slices, const Act& act) {
  while (!slices.empty()) {
    Batch<Slice> batch;
    std::size_t taken = 0;
    while (taken < slices.size() && batch.add(slices[taken])) ++taken;
    act(batch);
    check_cuda(cudaGetLastError(), "launching a codec kernel");
    slices = slices.subspan(taken);
  }
}

#endif

}  // namespace hipress::kernels
