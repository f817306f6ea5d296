#pragma once

#include <cstdint>

namespace hipress::kernels {

/// Runs merge() on the current GPU, for fp32: x = (x / own_divisor + y) / sum_divisor; without y if
/// it is null. Gives the same bits as on the CPU. Enqueues on `stream` and returns.
void merge_on_gpu(const float* y, std::int64_t elements, float* x, float own_divisor,
                  float sum_divisor, void* stream);

}  // namespace hipress::kernels
