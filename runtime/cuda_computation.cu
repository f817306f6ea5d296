// Plain kernels for the classes of computation in training. They serve to load memory and
// arithmetic units beside codecs and transfers, so the last percent of speed does not matter.

#include <cuda_runtime.h>

#include "kernels/cuda/batch.hpp"
#include "runtime/cuda_computation.hpp"
#include "runtime/cuda_product.hpp"

namespace hipress::runtime {

namespace {

constexpr int kThreads = 256;
constexpr int kWarp = 32;

__device__ float4 activated(float4 a, float4 b) {
  a.x = a.x / (1 + expf(-a.x)) + b.x;
  a.y = a.y / (1 + expf(-a.y)) + b.y;
  a.z = a.z / (1 + expf(-a.z)) + b.z;
  a.w = a.w / (1 + expf(-a.w)) + b.w;
  return a;
}

__global__ void activate(const float4* a, const float4* b, float4* c, std::int64_t n) {
  const std::int64_t all = n * n / 4, step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < all; i += step) {
    c[i] = activated(a[i], b[i]);
  }
}

/// Sum over a block's threads, returned to all of them.
__device__ float sum_of_block(float value) {
  __shared__ float of_warps[kThreads / kWarp];
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(~0u, value, distance);
  }
  __syncthreads();  // wait until the last call's sums have been read
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = value;
  __syncthreads();
  value = 0;
  for (int i = 0; i < kThreads / kWarp; ++i) value += of_warps[i];
  return value;
}

__device__ float sum_of(float4 values) { return (values.x + values.y) + (values.z + values.w); }

/// Sums one row per block.
__global__ void sum_rows(const float4* a, const float4*, float* c, std::int64_t n) {
  const float4* const row = a + blockIdx.x * (n / 4);
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < n / 4; i += kThreads) sum += sum_of(row[i]);
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) c[blockIdx.x] = sum;
}

__device__ float4 minus(float4 values, float mean) {
  return {values.x - mean, values.y - mean, values.z - mean, values.w - mean};
}

/// Normalises one row per block, which reads the row three times, the last two from a cache.
__global__ void normalise(const float4* a, const float4* b, float4* c, std::int64_t n) {
  const std::int64_t length = n / 4;
  const float4* const row = a + blockIdx.x * length;
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < length; i += kThreads) sum += sum_of(row[i]);
  const float mean = sum_of_block(sum) / static_cast<float>(n);
  float squares = 0;
  for (std::int64_t i = threadIdx.x; i < length; i += kThreads) {
    const float4 far = minus(row[i], mean);
    squares += sum_of({far.x * far.x, far.y * far.y, far.z * far.z, far.w * far.w});
  }
  const float scale = 1 / sqrtf(sum_of_block(squares) / static_cast<float>(n) + 1e-5f);
  for (std::int64_t i = threadIdx.x; i < length; i += kThreads) {
    const float4 far = minus(row[i], mean), gain = b[i], shift = b[length + i];
    c[blockIdx.x * length + i] = {
        gain.x * far.x * scale + shift.x, gain.y * far.y * scale + shift.y,
        gain.z * far.z * scale + shift.z, gain.w * far.w * scale + shift.w};
  }
}

constexpr int kHead = 64;     ///< columns of a head
constexpr int kQueries = 64;  ///< rows of c per block
constexpr int kKeys = 32;     ///< rows of b in shared memory at a time
constexpr int kSide = 16;     ///< threads of a block per dimension
constexpr int kOwn = kQueries / kSide;
constexpr int kOwnKeys = kKeys / kSide;

/// Maximum over the kSide threads of a row, returned to all of them.
__device__ float most_of_row(float value) {
  for (int distance = kSide / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(~0u, value, distance, kSide));
  }
  return value;
}
__device__ float sum_of_row(float value) {
  for (int distance = kSide / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(~0u, value, distance, kSide);
  }
  return value;
}

/// Flash attention: the softmax is corrected tile by tile, so the matrix of products never goes
/// through memory. A thread computes kOwn rows, from kOwn·y on, and every kSide-th column.
__global__ void attend(const float* a, const float* b, float* c, std::int64_t n) {
  __shared__ float queries[kQueries][kHead + 1];
  __shared__ float keys[kKeys][kHead + 1];
  __shared__ float shares[kQueries][kKeys + 1];
  const int x = threadIdx.x, y = threadIdx.y, thread = y * kSide + x;
  const std::int64_t first = std::int64_t{blockIdx.x} * kQueries, head = blockIdx.y * kHead;
  for (int i = thread; i < kQueries * kHead; i += kSide * kSide) {
    queries[i / kHead][i % kHead] = a[(first + i / kHead) * n + head + i % kHead] * 0.125f;
  }
  float most[kOwn], sums[kOwn] = {}, made[kOwn][kOwn] = {};
  for (float& one : most) one = -INFINITY;
  for (std::int64_t key = 0; key < n; key += kKeys) {
    __syncthreads();
    for (int i = thread; i < kKeys * kHead; i += kSide * kSide) {
      keys[i / kHead][i % kHead] = b[(key + i / kHead) * n + head + i % kHead];
    }
    __syncthreads();
    float products[kOwn][kOwnKeys] = {};
    for (int k = 0; k < kHead; ++k) {
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
#pragma unroll
        for (int j = 0; j < kOwnKeys; ++j) {
          products[i][j] += queries[y * kOwn + i][k] * keys[j * kSide + x][k];
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      float top = most[i], sum = 0;
      for (const float product : products[i]) top = fmaxf(top, product);
      top = most_of_row(top);
      for (int j = 0; j < kOwnKeys; ++j) {
        const float share = expf(products[i][j] - top);
        shares[y * kOwn + i][j * kSide + x] = share;
        sum += share;
      }
      const float kept = expf(most[i] - top);
      most[i] = top;
      sums[i] = sums[i] * kept + sum_of_row(sum);
      for (float& one : made[i]) one *= kept;
    }
    __syncthreads();
    for (int k = 0; k < kKeys; ++k) {
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
#pragma unroll
        for (int j = 0; j < kOwn; ++j) {
          made[i][j] += shares[y * kOwn + i][k] * keys[k][j * kSide + x];
        }
      }
    }
  }
  for (int i = 0; i < kOwn; ++i) {
    for (int j = 0; j < kOwn; ++j) {
      c[(first + y * kOwn + i) * n + head + j * kSide + x] = made[i][j] / sums[i];
    }
  }
}

}  // namespace

cudaError_t compute_on_gpu(models::ComputeClass what, const float* a, const float* b, float* c,
                           std::int64_t n, cudaStream_t stream) {
  if (n <= 0 || n % kQueries != 0) return cudaErrorInvalidValue;
  const auto rows = static_cast<unsigned>(n), tiles = rows / kQueries;
  const auto pieces = static_cast<unsigned>((n * n / 4 + kThreads - 1) / kThreads);
  void* arguments[] = {&a, &b, &c, &n};
  const auto launch = [&](auto* kernel, dim3 blocks, dim3 threads) {
    return cudaLaunchKernel(kernels::handle_of(kernel), blocks, threads, arguments, 0, stream);
  };
  switch (what) {
    case models::ComputeClass::kGemm:
      return multiply_on_gpu(a, b, c, n, stream);
    case models::ComputeClass::kAttention:
      return launch(attend, dim3(tiles, tiles), dim3(kSide, kSide));
    case models::ComputeClass::kElementwise:
      return launch(activate, pieces, kThreads);
    case models::ComputeClass::kReduction:
      return launch(sum_rows, rows, kThreads);
    case models::ComputeClass::kNorm:
      return launch(normalise, rows, kThreads);
  }
  return cudaErrorInvalidValue;
}

}  // namespace hipress::runtime
