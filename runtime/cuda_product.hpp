#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace hipress::runtime {

/// Enqueues c = a·b on the current GPU, for row-major square matrices; n must be a multiple of 64.
cudaError_t multiply_on_gpu(const float* a, const float* b, float* c, std::int64_t n,
                            cudaStream_t stream);

}  // namespace hipress::runtime
