// Tiled matrix product on a GPU, through shared memory and registers. It is used if cuBLAS, which
// is not shipped, is missing.

#include <cuda_runtime.h>

#include "kernels/cuda/batch.hpp"
#include "runtime/cuda_product.hpp"

namespace hipress::runtime {

namespace {

constexpr int kTile = 64;   ///< rows and columns of c per block
constexpr int kDepth = 16;  ///< columns of a and rows of b in shared memory at a time
constexpr int kOwn = 4;     ///< rows and columns per thread
constexpr int kSide = kTile / kOwn;

__global__ void multiply(const float* a, const float* b, float* c, std::int64_t n) {
  __shared__ float a_tile[kDepth][kTile];  // transposed, so that a thread's rows lie together
  __shared__ float b_tile[kDepth][kTile];
  const int column = threadIdx.x, row = threadIdx.y;
  const int thread = row * kSide + column;
  const std::int64_t first_row = std::int64_t{blockIdx.y} * kTile;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * kTile;
  float sums[kOwn][kOwn] = {};
  for (std::int64_t depth = 0; depth < n; depth += kDepth) {
    for (int i = thread; i < kTile * kDepth; i += kSide * kSide) {
      a_tile[i % kDepth][i / kDepth] = a[(first_row + i / kDepth) * n + depth + i % kDepth];
      b_tile[i / kTile][i % kTile] = b[(depth + i / kTile) * n + first_column + i % kTile];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
#pragma unroll
        for (int j = 0; j < kOwn; ++j) {
          sums[i][j] += a_tile[k][row * kOwn + i] * b_tile[k][column * kOwn + j];
        }
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < kOwn; ++i) {
    for (int j = 0; j < kOwn; ++j) {
      c[(first_row + row * kOwn + i) * n + first_column + column * kOwn + j] = sums[i][j];
    }
  }
}

}  // namespace

cudaError_t multiply_on_gpu(const float* a, const float* b, float* c, std::int64_t n,
                            cudaStream_t stream) {
  if (n <= 0 || n % kTile != 0) return cudaErrorInvalidValue;
  const auto blocks = static_cast<unsigned>(n / kTile);
  void* arguments[] = {&a, &b, &c, &n};
  return cudaLaunchKernel(kernels::handle_of(multiply), dim3(blocks, blocks), dim3(kSide, kSide),
                          arguments, 0, stream);
}

}  // namespace hipress::runtime
