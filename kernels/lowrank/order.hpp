#pragma once

#include <cstdint>

#include "kernels/codec/lanes.hpp"
#include "kernels/codec/slice.hpp"
#include "kernels/frames/draws.hpp"
#include "kernels/frames/typed_values.hpp"
#include "kernels/lowrank/operators.hpp"

/// The order of sums in the operators on low-rank factors, on every device and instruction set, and
/// their common arithmetic. A gradient is a matrix M, row by row; a factor has `rank` columns, each
/// contiguous.
///
///   product M·B            A row's columns are cut into tiles of 1024. In a tile, lane l of 16
///                          adds the products of columns l, l + 16 … in order; then lanes l and
///                          l + 8, l + 4 … are added until one number is left, all of it in fp32.
///                          Tiles are added in order, in double.
///   transposed product     Rows are cut into tiles of 128, and these into groups of 8. The
///   Mᵀ·A                   products of a group are added in order, and the groups' sums are
///                          added to the sum of their tile, both in fp32. Tiles are added in order,
///                          in double.
///   A·Bᵀ                   Products are added column by column of the factors, in fp32.
///   Gram matrix AᵀA        Rows are cut into blocks of 1024. In a block, lane l of 16 adds the
///                          products of rows l, l + 16 …; then lanes as above. Blocks are added in
///                          order. All is in double, where products of fp32 numbers are exact.
///
/// A tile whose fp32 sum is not finite is summed again in double, in the same order. So a sum is
/// non-finite only if an input is.
namespace hipress::kernels::lowrank {

inline constexpr int kLanes = 16;
inline constexpr int kTileColumns = 1024;
inline constexpr int kTileRows = 128;
inline constexpr int kGroupRows = 8;
inline constexpr int kGramRows = 1024;
inline constexpr int kMaxRank = 128;

/// Rank threshold: a column counts as dependent on the earlier ones if the part orthogonal to them
/// has less than this share of its squared length. With a Gram matrix in double, condition numbers
/// up to 3·10^6 are resolved.
inline constexpr double kLeastPivot = 1e-13;

/// Saturation bound of a factor's entries; sums over 65536 nodes stay finite.
inline constexpr double kLargestOfFactor = 0x1p111;

/// Value v of an input x and its residual. The term x − x is 0, or NaN if x is not finite.
template <class F>
HIPRESS_LANES F with_residual(F x, F residual) {
  const F sum = x + residual;
  return larger(broadcast<F>(-kLargest), smaller(broadcast<F>(kLargest), sum)) + (x - x);
}

/// Next residual: v minus the sent value, clamped to finite floats.
template <class F>
HIPRESS_LANES F rest_of(F v, F sent) {
  return larger(broadcast<F>(-kLargest), smaller(broadcast<F>(kLargest), v - sent));
}

HIPRESS_LANES float entry_of(const Matrix& matrix, std::int64_t row, std::int64_t column) {
  const std::int64_t i = row * matrix.columns + column;
  const float x = load_value(matrix.values, matrix.type, i);
  return matrix.residual == nullptr ? x : with_residual(x, matrix.residual[i]);
}

/// Entry of a factor: sum · scale, clamped to ±kLargestOfFactor; NaN if it is not finite.
HIPRESS_LANES float rounded_entry(double sum, double scale) {
  const double entry = sum * scale;
  if (!(entry - entry == 0)) return not_a_number();
  if (entry > kLargestOfFactor) return static_cast<float>(kLargestOfFactor);
  if (entry < -kLargestOfFactor) return static_cast<float>(-kLargestOfFactor);
  return static_cast<float>(entry);
}

/// Adds lanes l and l + 8, l + 4 … until one number is left.
HIPRESS_LANES double combine_lanes(double (&lanes)[kLanes]) {
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

/// A draw with mean 0 and variance 1: the sum of eight uniform draws. It is exact in integers, so
/// it is the same everywhere. Like a normal distribution, it gives independent entries and nearly
/// uniform directions, which is all that is needed here.
HIPRESS_LANES float draw_normal(const DrawStream& stream, std::int64_t element) {
  std::int32_t sum = 0;
  for (std::uint32_t site = 0; site < 8; ++site) {
    sum += static_cast<std::int32_t>(draw<float>(stream_of_site(stream, site), element) >> 16);
  }
  // The mean of the sum is 8 · 65535 / 2, its variance 8 · (65536² − 1) / 12.
  return static_cast<float>(2 * sum - 8 * 65535) * 0x1.3988e2p-17f;
}

/// Draws of a factor, the same on all nodes.
HIPRESS_LANES DrawStream stream_of_factor(const DrawKey& key, std::int64_t entries) {
  DrawKey common;
  common.seed = key.seed;
  common.step = key.step;
  common.gradient = key.gradient;
  common.role = key.role;
  return draw_stream(common, entries);
}

// ---- from a Gram matrix to the matrix that makes the columns orthonormal ----
//
// Matrices are rank × rank, row by row, and upper triangular. Work is distributed by columns:
// worker `first` of `step` does columns first, first + step …; `meet()` is a barrier among the
// workers, and a no-op for a single one.

/// Replaces a Gram matrix by its Cholesky factor R, with zero rows for dependent columns. `lengths`
/// is the Gram matrix's diagonal. Returns false if an entry of the diagonal is not finite.
template <class Meet>
HIPRESS_LANES bool factorise(double* gram, const double* lengths, int rank, int first, int step,
                             const Meet& meet) {
  bool finite = true;
  for (int k = 0; k < rank; ++k) finite = finite && lengths[k] - lengths[k] == 0;
  for (int k = 0; k < rank; ++k) {
    meet();
    const double pivot = gram[k * rank + k];
    const bool independent = finite && pivot > kLeastPivot * lengths[k];
    const double root = independent ? __builtin_sqrt(pivot) : 0.0;
    meet();
    for (int j = k + first; j < rank; j += step) {
      double& entry = gram[k * rank + j];
      entry = !independent ? 0.0 : j == k ? root : entry / root;
    }
    meet();
    for (int j = k + 1 + first; j < rank; j += step) {
      const double above = gram[k * rank + j];
      for (int i = k + 1; i <= j; ++i) gram[i * rank + j] -= gram[k * rank + i] * above;
    }
  }
  meet();
  return finite;
}

/// Computes the inverse of R; rows and columns of dependent columns are 0.
HIPRESS_LANES void invert(const double* factor, double* inverse, int rank, int first, int step) {
  for (int j = first; j < rank; j += step) {
    const double own = factor[j * rank + j];
    for (int i = rank - 1; i > j; --i) inverse[i * rank + j] = 0;
    inverse[j * rank + j] = own > 0 ? 1 / own : 0.0;
    for (int i = j - 1; i >= 0; --i) {
      double sum = 0;
      for (int k = i + 1; k <= j; ++k) sum += factor[i * rank + k] * inverse[k * rank + j];
      const double pivot = factor[i * rank + i];
      inverse[i * rank + j] = pivot > 0 ? -sum / pivot : 0.0;
    }
  }
}

}  // namespace hipress::kernels::lowrank
