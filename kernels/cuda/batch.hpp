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

/// Batches of slices are passed to a GPU as kernel parameters. A launch then needs neither a copy
/// nor device memory for them, and many small slices share one launch.
namespace hipress::kernels {

inline constexpr int kWarpThreads = 32;
inline constexpr int kWarpsPerBlock = 8;
inline constexpr int kThreadsPerBlock = kWarpThreads * kWarpsPerBlock;
/// Elements of a thread block. A warp processes one tile; its lane l, element l of each word.
inline constexpr std::int64_t kElementsPerBlock = std::int64_t{kWarpsPerBlock} * kTileElements;

/// Maximal size of kernel parameters.
inline constexpr std::size_t kParameterBytes = 4096;

/// Slices of one launch. A Slice has `elements` and `first_block`, the number of thread blocks of
/// the slices before it.
template <class Slice>
struct Batch {
  static constexpr int kMax = static_cast<int>((kParameterBytes - 64) / sizeof(Slice));

  Slice slices[kMax];
  int count = 0;
  std::int64_t blocks = 0;

  /// Adds a slice; false if the batch is full.
  bool add(const Slice& slice) {
    if (count == kMax) return false;
    slices[count] = slice;
    slices[count].first_block = blocks;
    blocks += (slice.elements + kElementsPerBlock - 1) / kElementsPerBlock;
    ++count;
    return true;
  }

  /// The slice of a thread block.
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

/// Handle of a kernel for cudaLaunchKernel.
template <class... Parameters>
const void* handle_of(void (*kernel)(Parameters...)) {
#ifdef HIPRESS_EMULATES_CUDA
  return emulation::handle_of(kernel);  // tests/kernels/emulation: keeps the kernel's type
#else
  return reinterpret_cast<const void*>(kernel);
#endif
}

/// Launches `blocks` thread blocks of a kernel that takes `argument`.
template <class Argument>
void launch(void (*kernel)(Argument), std::int64_t blocks, Argument argument, cudaStream_t stream) {
  void* arguments[] = {&argument};
  check_cuda(cudaLaunchKernel(handle_of(kernel), dim3(static_cast<unsigned>(blocks)),
                              dim3(kThreadsPerBlock), arguments, 0, stream),
             "launching a codec kernel");
}

/// Encodes a slice without elements: sets its message length to 0.
inline void encode_nothing(const EncodeItem& item, cudaStream_t stream) {
  if (item.message_bytes == nullptr) return;
  check_cuda(cudaMemsetAsync(item.message_bytes, 0, sizeof *item.message_bytes, stream),
             "encoding a slice without elements");
}

/// Calls `act(batch)`, which launches kernels, for all of `slices`, in batches as large as
/// possible.
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
