#pragma once

#include <cstdint>

#include "kernels/host/isa.hpp"
#include "kernels/lowrank/operators.hpp"
#include "kernels/lowrank/order.hpp"

/// Loops of the host's operators, one table per instruction set (isa_*.cpp).
namespace hipress::kernels::lowrank {

struct Loops {
  /// Adds M·factor to `totals` (`rank` columns of matrix.rows). `room`: room_floats(rank) floats.
  void (*multiply)(const Matrix& matrix, const float* factor, int rank, double* totals,
                   float* room);
  /// Adds Mᵀ·factor to `totals` (`rank` columns of matrix.columns).
  void (*multiply_transposed)(const Matrix& matrix, const float* factor, int rank, double* totals,
                              float* room);
  /// Reconstruction of values and residual; does not touch `mean` and `kept`.
  void (*reconstruct)(const Reconstruction& item, float* room);
  /// Computes gram[i * rank + j] for i ≤ j.
  void (*multiply_by_own)(const float* factor, std::int64_t rows, int rank, double* gram);
  /// Computes factor = factor·inverse, where `inverse` is upper triangular. Columns with a 0 on its
  /// diagonal become 0.
  void (*multiply_by_inverse)(float* factor, std::int64_t rows, int rank, const double* inverse);
};

/// Size of `room`: a tile of a factor, and twice the rows of a matrix that are processed together.
constexpr std::int64_t room_floats(int rank) {
  return std::int64_t{kTileColumns} * (rank + 2 * kGroupRows);
}

extern const Loops scalar_loops, portable_loops, avx2_loops, avx512_loops;

}  // namespace hipress::kernels::lowrank
