#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "models/mix.hpp"

namespace hipress::runtime {

/// Enqueues the work of compute_on_host() on the current GPU, except products: see
/// multiply_on_gpu(). n must be a multiple of 64.
cudaError_t compute_on_gpu(models::ComputeClass what, const float* a, const float* b, float* c,
                           std::int64_t n, cudaStream_t stream);

}  // namespace hipress::runtime
