#pragma once

#include <cstdint>

#include "models/mix.hpp"

namespace hipress::runtime {

/// Columns of a head in the attention of Device::compute().
inline constexpr std::int64_t kHeadColumns = 64;

/// What Device::compute() makes of square matrices of n rows, row by row; the reference for
/// devices, which round otherwise.
/// - gemm: c = a·b.
/// - attention: of each head, 64 columns, c = softmax(a·bᵀ/8)·b, in one pass over b.
/// - elementwise: c = a/(1 + e^−a) + b.
/// - reduction: the first n values of c are the sums of the rows of a.
/// - norm: c = g·(a − mean)/√(variance + 1e-5) + h, of each row of a; g is the first row of b, h
///   the second.
void compute_on_host(models::ComputeClass what, const float* a, const float* b, float* c,
                     std::int64_t n);

}  // namespace hipress::runtime
