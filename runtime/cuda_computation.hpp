#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "models/mix.hpp"

namespace hipress::runtime {

/// Enqueues on the current GPU what compute_on_host() does, but for a product, which
/// multiply_on_gpu() makes; n is a multiple of 64.
cudaError_t compute_on_gpu(models::ComputeClass what, const float* a, const float* b, float* c,
                           std::int64_t n, cudaStream_t stream);

}  // namespace hipress::runtime
