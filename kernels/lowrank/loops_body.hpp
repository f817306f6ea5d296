#pragma once

#include <cstdint>

#include "kernels/lowrank/loops.hpp"

/// Bodies of the loops of loops.hpp, for float lanes F; included only by isa_*.cpp. Every function
/// that is not forced inline is a template on F; see host/loops_body.hpp.
namespace hipress::kernels::lowrank {

HIPRESS_LANES std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

/// `width` entries of a row of a matrix, starting at column `first`, in fp32, then zeros up to
/// `padded` entries. They are in place if possible, else copied to `room`.
template <class F>
HIPRESS_LANES const float* line_of(const Matrix& matrix, std::int64_t row, std::int64_t first,
                                   std::int64_t width, std::int64_t padded, float* room) {
  const std::int64_t start = row * matrix.columns + first;
  const bool in_place = matrix.type == ValueType::kFloat32;
  if (in_place && matrix.residual == nullptr && padded == width) {
    return static_cast<const float*>(matrix.values) + start;
  }
  const float* values = static_cast<const float*>(matrix.values) + start;
  if (!in_place || matrix.residual == nullptr) {
    widen<F>(matrix.values, matrix.type, start, width, room);
    values = room;
  }
  if (matrix.residual != nullptr) {
    const float* const residual = matrix.residual + start;
    constexpr int kWidth = Lanes<F>::kWidth;
    std::int64_t j = 0;
    for (; j + kWidth <= width; j += kWidth) {
      F x, r;
      load(values + j, x);
      load(residual + j, r);
      store(room + j, with_residual(x, r));
    }
    for (; j < width; ++j) room[j] = with_residual(values[j], residual[j]);
  }
  for (std::int64_t j = width; j < padded; ++j) room[j] = 0;
  return room;
}

// ---- M·B ----

/// Sixteen lanes, in vectors of F.
template <class F>
struct LaneSums {
  static constexpr int kParts = kLanes / Lanes<F>::kWidth;
  F part[kParts];
};

template <int kBy, class F>
HIPRESS_LANES F combine_within(F sum) {
  if constexpr (kBy == 0) {
    return sum;
  } else {
    return combine_within<kBy / 2>(sum + rotate_lanes<kBy>(sum));
  }
}

/// Sum of the lanes: combine_lanes() of order.hpp, in fp32.
template <class F>
HIPRESS_LANES float combined(LaneSums<F> sums) {
  for (int half = LaneSums<F>::kParts / 2; half > 0; half /= 2) {
    for (int part = 0; part < half; ++part) {
      sums.part[part] = sums.part[part] + sums.part[part + half];
    }
  }
  if constexpr (Lanes<F>::kWidth == 1) {
    return sums.part[0];
  } else {
    return combine_within<Lanes<F>::kWidth / 2>(sums.part[0])[0];
  }
}

template <class F>
__attribute__((noinline)) double dot_in_double(const float* line, const float* column,
                                               std::int64_t padded) {
  double lanes[kLanes] = {};
  for (std::int64_t j = 0; j < padded; j += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += static_cast<double>(line[j + lane]) * static_cast<double>(column[j + lane]);
    }
  }
  return combine_lanes(lanes);
}

/// Adds dot products: totals[c * stride + r] += lines[r] · (column c of a tile), for kRows rows and
/// kColumns columns.
template <class F, int kRows, int kColumns>
HIPRESS_LANES void add_dots(const float* const* lines, const float* tile, std::int64_t padded,
                            double* totals, std::int64_t stride) {
  using Sums = LaneSums<F>;
  constexpr int kWidth = Lanes<F>::kWidth;
  Sums sums[kRows][kColumns] = {};
  for (std::int64_t j = 0; j < padded; j += kLanes) {
    for (int part = 0; part < Sums::kParts; ++part) {
      F entries[kRows];
      for (int r = 0; r < kRows; ++r) load(lines[r] + j + part * kWidth, entries[r]);
      for (int c = 0; c < kColumns; ++c) {
        F column;
        load(tile + c * kTileColumns + j + part * kWidth, column);
        for (int r = 0; r < kRows; ++r) {
          sums[r][c].part[part] = sums[r][c].part[part] + entries[r] * column;
        }
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) {
      const float sum = combined<F>(sums[r][c]);
      totals[c * stride + r] += is_finite(sum)
                                    ? static_cast<double>(sum)
                                    : dot_in_double<F>(lines[r], tile + c * kTileColumns, padded);
    }
  }
}

template <class F, int kRows>
HIPRESS_LANES void add_all_dots(const float* const* lines, const float* tile, int rank,
                                std::int64_t padded, double* totals, std::int64_t stride) {
  int c = 0;
  for (; c + 4 <= rank; c += 4) {
    add_dots<F, kRows, 4>(lines, tile + c * kTileColumns, padded, totals + c * stride, stride);
  }
  for (; c + 2 <= rank; c += 2) {
    add_dots<F, kRows, 2>(lines, tile + c * kTileColumns, padded, totals + c * stride, stride);
  }
  if (c < rank) {
    add_dots<F, kRows, 1>(lines, tile + c * kTileColumns, padded, totals + c * stride, stride);
  }
}

template <class F>
void multiply(const Matrix& matrix, const float* factor, int rank, double* totals, float* room) {
  constexpr int kRows = Lanes<F>::kWidth == 16 ? 4 : Lanes<F>::kWidth == 8 ? 2 : 1;
  float* const tile = room;
  float* const panel = room + std::int64_t{kTileColumns} * rank;
  for (std::int64_t first = 0; first < matrix.columns; first += kTileColumns) {
    const std::int64_t width = least(kTileColumns, matrix.columns - first);
    const std::int64_t padded = (width + kLanes - 1) / kLanes * kLanes;
    for (int c = 0; c < rank; ++c) {
      const float* const column = factor + c * matrix.columns + first;
      float* const to = tile + c * kTileColumns;
      for (std::int64_t j = 0; j < width; ++j) to[j] = column[j];
      for (std::int64_t j = width; j < padded; ++j) to[j] = 0;
    }
    const float* lines[kRows];
    std::int64_t row = 0;
    for (; row + kRows <= matrix.rows; row += kRows) {
      for (int r = 0; r < kRows; ++r) {
        lines[r] = line_of<F>(matrix, row + r, first, width, padded, panel + r * kTileColumns);
      }
      add_all_dots<F, kRows>(lines, tile, rank, padded, totals + row, matrix.rows);
    }
    for (; row < matrix.rows; ++row) {
      lines[0] = line_of<F>(matrix, row, first, width, padded, panel);
      add_all_dots<F, 1>(lines, tile, rank, padded, totals + row, matrix.rows);
    }
  }
}

// ---- Mᵀ·A ----

/// Adds the products of a group's rows to sums[c * kTileColumns + j], for kColumns columns of the
/// factor and kVectorsAtOnce vectors of V starting at column j.
template <class V, int kColumns, int kVectorsAtOnce>
HIPRESS_LANES void add_group_at(const float* const (&lines)[kGroupRows],
                                const float (*entries)[kGroupRows], std::int64_t j, float* sums) {
  constexpr int kWidth = Lanes<V>::kWidth;
  V group[kColumns][kVectorsAtOnce];
  for (int k = 0; k < kGroupRows; ++k) {
    V line[kVectorsAtOnce];
    for (int v = 0; v < kVectorsAtOnce; ++v) load(lines[k] + j + v * kWidth, line[v]);
    for (int c = 0; c < kColumns; ++c) {
      const V entry = broadcast<V>(entries[c][k]);
      for (int v = 0; v < kVectorsAtOnce; ++v) {
        const V product = line[v] * entry;
        group[c][v] = k == 0 ? product : group[c][v] + product;
      }
    }
  }
  for (int c = 0; c < kColumns; ++c) {
    for (int v = 0; v < kVectorsAtOnce; ++v) {
      float* const place = sums + c * kTileColumns + j + v * kWidth;
      V sum;
      load(place, sum);
      store(place, sum + group[c][v]);
    }
  }
}

template <class F, int kColumns>
HIPRESS_LANES void add_group(const float* const (&lines)[kGroupRows],
                             const float (*entries)[kGroupRows], std::int64_t width, float* sums) {
  constexpr int kVectorsAtOnce = 2, kStep = kVectorsAtOnce * Lanes<F>::kWidth;
  std::int64_t j = 0;
  for (; j + kStep <= width; j += kStep) {
    add_group_at<F, kColumns, kVectorsAtOnce>(lines, entries, j, sums);
  }
  for (; j < width; ++j) add_group_at<float, kColumns, 1>(lines, entries, j, sums);
}

/// Dot product of `column` and column j of the matrix over rows [first, end), in double.
template <class F>
__attribute__((noinline)) double tile_in_double(const Matrix& matrix, const float* column,
                                                std::int64_t first, std::int64_t end,
                                                std::int64_t j) {
  double sum = 0;
  for (std::int64_t group = first; group < end; group += kGroupRows) {
    double of_group = 0;
    for (std::int64_t row = group; row < least(group + kGroupRows, end); ++row) {
      of_group += static_cast<double>(entry_of(matrix, row, j)) * static_cast<double>(column[row]);
    }
    sum += of_group;
  }
  return sum;
}

/// Adds the products of rows [first, end), at most kGroupRows, to the sums of a tile.
template <class F>
HIPRESS_LANES void add_rows(const Matrix& matrix, const float* factor, int rank, std::int64_t first,
                            std::int64_t end, std::int64_t first_column, std::int64_t width,
                            float* sums, float* panel) {
  const float* lines[kGroupRows];
  float entries[kMaxRank][kGroupRows];
  for (int k = 0; k < kGroupRows; ++k) {
    const std::int64_t row = first + k;
    float* const line = panel + k * kTileColumns;
    if (row < end) {
      lines[k] = line_of<F>(matrix, row, first_column, width, width, line);
    } else {
      // The last group may have fewer rows: zeros take their place.
      for (std::int64_t j = 0; j < width; ++j) line[j] = 0;
      lines[k] = line;
    }
    for (int c = 0; c < rank; ++c) entries[c][k] = row < end ? factor[c * matrix.rows + row] : 0;
  }
  int c = 0;
  for (; c + 4 <= rank; c += 4) {
    add_group<F, 4>(lines, entries + c, width, sums + c * kTileColumns);
  }
  for (; c + 2 <= rank; c += 2) {
    add_group<F, 2>(lines, entries + c, width, sums + c * kTileColumns);
  }
  if (c < rank) add_group<F, 1>(lines, entries + c, width, sums + c * kTileColumns);
}

/// Adds a tile's sums for one column of the factor to `totals`; sums that are not finite are
/// computed again in double.
template <class F>
HIPRESS_LANES void add_tile(const Matrix& matrix, const float* column, std::int64_t first,
                            std::int64_t end, std::int64_t first_column, std::int64_t width,
                            const float* sums, double* totals) {
  std::uint32_t flags = 0;
  for (std::int64_t i = 0; i < width; ++i) flags |= non_finite_flag(sums[i]);
  if ((flags & 0x80000000u) == 0) {
    for (std::int64_t i = 0; i < width; ++i) totals[i] += static_cast<double>(sums[i]);
    return;
  }
  for (std::int64_t i = 0; i < width; ++i) {
    totals[i] += is_finite(sums[i])
                     ? static_cast<double>(sums[i])
                     : tile_in_double<F>(matrix, column, first, end, first_column + i);
  }
}

template <class F>
void multiply_transposed(const Matrix& matrix, const float* factor, int rank, double* totals,
                         float* room) {
  float* const sums = room;
  float* const panel = room + std::int64_t{kTileColumns} * rank;
  for (std::int64_t j = 0; j < matrix.columns; j += kTileColumns) {
    const std::int64_t width = least(kTileColumns, matrix.columns - j);
    for (std::int64_t tile = 0; tile < matrix.rows; tile += kTileRows) {
      const std::int64_t end = least(tile + kTileRows, matrix.rows);
      for (std::int64_t i = 0; i < std::int64_t{kTileColumns} * rank; ++i) sums[i] = 0;
      for (std::int64_t row = tile; row < end; row += kGroupRows) {
        add_rows<F>(matrix, factor, rank, row, end, j, width, sums, panel);
      }
      for (int c = 0; c < rank; ++c) {
        add_tile<F>(matrix, factor + c * matrix.rows, tile, end, j, width, sums + c * kTileColumns,
                    totals + c * matrix.columns + j);
      }
    }
  }
}

// ---- A·Bᵀ ----

inline constexpr int kRowsAtOnce = 4;

/// Adds to kRowsAtOnce rows, in vectors of V starting at column j: products[r] += Σ left[c][r] ·
/// right[c] over kColumns columns; assigns instead if `first`.
template <class V, int kColumns>
HIPRESS_LANES void add_columns_at(const float (*left)[kRowsAtOnce], const float* right,
                                  std::int64_t stride, std::int64_t j, bool first,
                                  float* products) {
  V sums[kRowsAtOnce];
  if (!first) {
    for (int r = 0; r < kRowsAtOnce; ++r) load(products + r * kTileColumns + j, sums[r]);
  }
  for (int c = 0; c < kColumns; ++c) {
    V column;
    load(right + c * stride + j, column);
    for (int r = 0; r < kRowsAtOnce; ++r) {
      const V product = broadcast<V>(left[c][r]) * column;
      sums[r] = first && c == 0 ? product : sums[r] + product;
    }
  }
  for (int r = 0; r < kRowsAtOnce; ++r) store(products + r * kTileColumns + j, sums[r]);
}

template <class F, int kColumns>
HIPRESS_LANES void add_columns(const float (*left)[kRowsAtOnce], const float* right,
                               std::int64_t stride, std::int64_t width, bool first,
                               float* products) {
  constexpr int kWidth = Lanes<F>::kWidth;
  const auto from = [&](bool is_first) __attribute__((always_inline)) {
    std::int64_t j = 0;
    for (; j + kWidth <= width; j += kWidth) {
      add_columns_at<F, kColumns>(left, right, stride, j, is_first, products);
    }
    for (; j < width; ++j) {
      add_columns_at<float, kColumns>(left, right, stride, j, is_first, products);
    }
  };
  if (first) {
    from(true);
  } else {
    from(false);
  }
}

/// Computes kRowsAtOnce rows of left·rightᵀ starting at row `row`; rows past the last one are 0.
template <class F>
__attribute__((noinline)) void product_tile(const float* left, std::int64_t rows, std::int64_t row,
                                            const float* right, std::int64_t columns,
                                            std::int64_t width, int rank, float* products) {
  float entries[kMaxRank][kRowsAtOnce];
  for (int c = 0; c < rank; ++c) {
    for (int r = 0; r < kRowsAtOnce; ++r) {
      entries[c][r] = row + r < rows ? left[c * rows + row + r] : 0;
    }
  }
  int c = 0;
  for (; c + 4 <= rank; c += 4) {
    add_columns<F, 4>(entries + c, right + c * columns, columns, width, c == 0, products);
  }
  for (; c < rank; ++c) {
    add_columns<F, 1>(entries + c, right + c * columns, columns, width, c == 0, products);
  }
}

/// Computes what is left to send: residual = line − own, clamped to finite floats. `line` holds
/// gradient plus old residual, `own` the same entries as decoded from own_left and own_right.
template <class V>
HIPRESS_LANES void keep_rest_at(const float* line, const float* own, float* residual) {
  V v, sent;
  load(line, v);
  load(own, sent);
  store(residual, rest_of(v, sent));
}

template <class F>
HIPRESS_LANES void keep_rest(const float* line, const float* own, std::int64_t width,
                             float* residual) {
  constexpr int kWidth = Lanes<F>::kWidth;
  std::int64_t j = 0;
  for (; j + kWidth <= width; j += kWidth) keep_rest_at<F>(line + j, own + j, residual + j);
  for (; j < width; ++j) keep_rest_at<float>(line + j, own + j, residual + j);
}

template <class F>
void reconstruct(const Reconstruction& item, float* room) {
  const Matrix& matrix = item.matrix;
  const std::int64_t rows = matrix.rows, columns = matrix.columns;
  const bool by_own = item.own_left != item.left || item.own_right != item.right;
  float* const decoded = room;
  float* const own = by_own ? room + kRowsAtOnce * kTileColumns : decoded;
  float* const line_room = room + 2 * kRowsAtOnce * kTileColumns;
  for (std::int64_t first = 0; first < columns; first += kTileColumns) {
    const std::int64_t width = least(kTileColumns, columns - first);
    for (std::int64_t row = 0; row < rows; row += kRowsAtOnce) {
      product_tile<F>(item.left, rows, row, item.right + first, columns, width, item.rank, decoded);
      if (matrix.residual != nullptr && by_own) {
        product_tile<F>(item.own_left, rows, row, item.own_right + first, columns, width, item.rank,
                        own);
      }
      for (int r = 0; r < kRowsAtOnce && row + r < rows; ++r) {
        const std::int64_t start = (row + r) * columns + first;
        if (matrix.residual != nullptr) {
          const float* const line = line_of<F>(matrix, row + r, first, width, width, line_room);
          keep_rest<F>(line, own + r * kTileColumns, width, matrix.residual + start);
        }
        round_to<F>(matrix.values, matrix.type, start, width, decoded + r * kTileColumns);
      }
    }
  }
}

// ---- small matrices, in double ----

/// Double-precision vectors with half as many lanes as F; one lane if F is `float`.
template <class F>
struct DoubleLanes;

using NarrowVector = float __attribute__((vector_size(2 * kVectorWidth)));
using DoubleVector = double __attribute__((vector_size(4 * kVectorWidth)));

template <>
struct DoubleLanes<FloatVector> {
  static constexpr int kWidth = kVectorWidth / 2;
  using Wide = DoubleVector;

  HIPRESS_LANES static Wide widened(const float* from) {
    NarrowVector narrow;
    __builtin_memcpy(&narrow, from, sizeof narrow);
    return __builtin_convertvector(narrow, Wide);
  }
  HIPRESS_LANES static void store_rounded(float* to, Wide value) {
    const NarrowVector narrow = __builtin_convertvector(value, NarrowVector);
    __builtin_memcpy(to, &narrow, sizeof narrow);
  }
};

template <>
struct DoubleLanes<float> {
  static constexpr int kWidth = 1;
  using Wide = double;

  HIPRESS_LANES static double widened(const float* from) { return *from; }
  HIPRESS_LANES static void store_rounded(float* to, double value) {
    *to = static_cast<float>(value);
  }
};

/// Dot product over at most kGramRows rows.
template <class F>
HIPRESS_LANES double dot_of_block(const float* a, const float* b, std::int64_t rows) {
  using Double = DoubleLanes<F>;
  constexpr int kParts = kLanes / Double::kWidth;
  typename Double::Wide parts[kParts] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= rows; i += kLanes) {
    for (int part = 0; part < kParts; ++part) {
      const std::int64_t place = i + part * Double::kWidth;
      parts[part] = parts[part] + Double::widened(a + place) * Double::widened(b + place);
    }
  }
  double lanes[kLanes];
  __builtin_memcpy(lanes, parts, sizeof lanes);
  for (int lane = 0; i < rows; ++i, ++lane) {
    lanes[lane] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return combine_lanes(lanes);
}

template <class F>
void multiply_by_own(const float* factor, std::int64_t rows, int rank, double* gram) {
  for (int i = 0; i < rank * rank; ++i) gram[i] = 0;
  for (std::int64_t first = 0; first < rows; first += kGramRows) {
    const std::int64_t count = least(kGramRows, rows - first);
    for (int i = 0; i < rank; ++i) {
      for (int j = i; j < rank; ++j) {
        gram[i * rank + j] +=
            dot_of_block<F>(factor + i * rows + first, factor + j * rows + first, count);
      }
    }
  }
}

/// Computes one vector of rows of factor·inverse in place. The last column comes first, because
/// column c needs the old values of columns 0 to c.
template <class F>
HIPRESS_LANES void multiply_rows_by_inverse(float* factor, std::int64_t rows, int rank,
                                            const double* inverse) {
  using Double = DoubleLanes<F>;
  for (int c = rank - 1; c >= 0; --c) {
    float* const to = factor + c * rows;
    typename Double::Wide sum = {};
    if (inverse[c * rank + c] != 0) {
      for (int k = 0; k <= c; ++k) {
        sum = sum + Double::widened(factor + k * rows) * inverse[k * rank + c];
      }
    }
    Double::store_rounded(to, sum);
  }
}

template <class F>
void multiply_by_inverse(float* factor, std::int64_t rows, int rank, const double* inverse) {
  constexpr int kWidth = DoubleLanes<F>::kWidth;
  std::int64_t row = 0;
  for (; row + kWidth <= rows; row += kWidth) {
    multiply_rows_by_inverse<F>(factor + row, rows, rank, inverse);
  }
  for (; row < rows; ++row) {
    multiply_rows_by_inverse<float>(factor + row, rows, rank, inverse);
  }
}

template <class F>
constexpr Loops loops_for() {
  return {.multiply = multiply<F>,
          .multiply_transposed = multiply_transposed<F>,
          .reconstruct = reconstruct<F>,
          .multiply_by_own = multiply_by_own<F>,
          .multiply_by_inverse = multiply_by_inverse<F>};
}

}  // namespace hipress::kernels::lowrank
