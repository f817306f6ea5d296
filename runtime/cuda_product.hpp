#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace hipress::runtime {

/// c = a·b on the current GPU, square, row by row, n a multiple of 64.
cudaError_t multiply_on_gpu(const float* a, const float* b, float* c, std::int64_t n,
                            cudaStream_t stream);

}  // namespace hipress::runtime
