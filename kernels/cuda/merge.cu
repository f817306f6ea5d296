// Implements merge_on_gpu().

#include <algorithm>

#include "kernels/cuda/batch.hpp"
#include "kernels/cuda/merge.hpp"

namespace hipress::kernels {

namespace {

/// Values that a thread reads at a time, for enough loads in flight.
constexpr int kAtOnce = 4;
constexpr std::int64_t kMergedPerBlock = std::int64_t{kAtOnce} * kThreadsPerBlock;

struct MergeSlice {
  const float* y;
  float* x;
  std::int64_t elements;
  float own_divisor, sum_divisor;
};

__device__ float merged(const MergeSlice& slice, float x, float y) {
  if (slice.own_divisor != 1) x = x / slice.own_divisor;
  if (slice.y != nullptr) x = x + y;
  if (slice.sum_divisor != 1) x = x / slice.sum_divisor;
  return x;
}

__global__ void merge_values(const MergeSlice slice) {
  const std::int64_t first = blockIdx.x * kMergedPerBlock + threadIdx.x;
  float x[kAtOnce] = {}, y[kAtOnce] = {};
#pragma unroll
  for (int row = 0; row < kAtOnce; ++row) {
    const std::int64_t i = first + std::int64_t{row} * kThreadsPerBlock;
    if (i >= slice.elements) continue;
    x[row] = slice.x[i];
    if (slice.y != nullptr) y[row] = slice.y[i];
  }
#pragma unroll
  for (int row = 0; row < kAtOnce; ++row) {
    const std::int64_t i = first + std::int64_t{row} * kThreadsPerBlock;
    if (i < slice.elements) slice.x[i] = merged(slice, x[row], y[row]);
  }
}

}  // namespace

void merge_on_gpu(const float* y, std::int64_t elements, float* x, float own_divisor,
                  float sum_divisor, void* stream) {
  if (elements <= 0) return;
  const MergeSlice slice = {y, x, elements, own_divisor, sum_divisor};
  launch(merge_values, (elements + kMergedPerBlock - 1) / kMergedPerBlock, slice,
         static_cast<cudaStream_t>(stream));
}

}  // namespace hipress::kernels
