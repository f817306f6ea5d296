#pragma once

#include <cstdint>

#include "models/mix.hpp"

namespace hipress::runtime {

/// Columns of an attention head in Device::compute().
inline constexpr std::int64_t kHeadColumns = 64;

/// Reference for Device::compute() on row-major square matrices of n rows; devices round
/// differently.
/// - gemm: c = a·b.
/// - attention: c = softmax(a·bᵀ/8)·b for each head of 64 columns, in one pass over b.
/// - elementwise: c = a/(1 + e^−a) + b.
/// - reduction: the first n values of c are the sums of the rows of a.
/// - norm: c = g·(a − mean)/√(variance + 1e-5) + h for each row of a; g is the first row of b, h
///   the second.
void compute_on_host(models::ComputeClass what, const float* a, const float* b, float* c,
                     std::int64_t n);

}  // namespace hipress::runtime
