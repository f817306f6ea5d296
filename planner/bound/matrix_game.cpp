#include "planner/bound/matrix_game.hpp"

#include <algorithm>
#include <limits>

namespace hipress::planner {
namespace {

constexpr double kTiny = 1e-11;

/// Tableau of the linear program: maximise the sum of p, subject to A p <= 1 and p >= 0. Its
/// columns are the variables p and the slacks.
class Tableau {
 public:
  Tableau(const std::vector<double>& values, std::size_t rows, std::size_t columns)
      : rows_(rows),
        columns_(columns),
        width_(rows + columns + 1),
        cells_((rows + 1) * width_, 0.0) {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    const double range = *most > *least ? *most - *least : 1;
    for (std::size_t row = 0; row < rows; ++row) {
      // A constant added to all values does not change the weights, so all are made positive.
      for (std::size_t column = 0; column < columns; ++column) {
        cell(row, column) = (values[row * columns + column] - *least) / range + 0.25;
      }
      cell(row, columns + row) = 1;
      cell(row, width_ - 1) = 1;
      basis_.push_back(columns + row);
    }
    for (std::size_t column = 0; column < columns; ++column) cell(rows, column) = -1;
  }

  bool pivot() {
    const std::size_t column = entering();
    if (column == width_) return false;
    const std::size_t row = leaving(column);
    if (row == rows_) return false;
    exchange(row, column);
    return true;
  }

  Equilibrium weights() {
    Equilibrium found;
    found.columns.assign(columns_, 0.0);
    for (std::size_t row = 0; row < rows_; ++row) {
      if (basis_[row] < columns_) found.columns[basis_[row]] = std::max(0.0, cell(row, width_ - 1));
    }
    for (std::size_t row = 0; row < rows_; ++row) {
      found.rows.push_back(std::max(0.0, cell(rows_, columns_ + row)));
    }
    normalise(found.columns);
    normalise(found.rows);
    return found;
  }

 private:
  double& cell(std::size_t row, std::size_t column) { return cells_[row * width_ + column]; }

  /// Entering column by Dantzig's rule; after many pivots by Bland's rule, which prevents cycles.
  std::size_t entering() {
    std::size_t best = width_;
    double least = -kTiny;
    for (std::size_t column = 0; column + 1 < width_; ++column) {
      if (cell(rows_, column) >= least) continue;
      best = column;
      least = cell(rows_, column);
      if (pivots_ > 2 * (rows_ + columns_)) break;
    }
    return best;
  }

  std::size_t leaving(std::size_t column) {
    std::size_t best = rows_;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t row = 0; row < rows_; ++row) {
      if (cell(row, column) <= kTiny) continue;
      const double ratio = cell(row, width_ - 1) / cell(row, column);
      if (ratio < least || (ratio == least && basis_[row] < basis_[best])) {
        best = row;
        least = ratio;
      }
    }
    return best;
  }

  void exchange(std::size_t row, std::size_t column) {
    ++pivots_;
    const double by = cell(row, column);
    for (std::size_t i = 0; i < width_; ++i) cell(row, i) /= by;
    for (std::size_t other = 0; other <= rows_; ++other) {
      const double factor = cell(other, column);
      if (other == row || factor == 0) continue;
      double* const target = &cell(other, 0);
      const double* const source = &cell(row, 0);
      for (std::size_t i = 0; i < width_; ++i) target[i] -= factor * source[i];
    }
    basis_[row] = column;
  }

  static void normalise(std::vector<double>& weights) {
    double sum = 0;
    for (const double weight : weights) sum += weight;
    if (sum <= 0) {
      weights.assign(weights.size(), 1 / static_cast<double>(weights.size()));
      return;
    }
    for (double& weight : weights) weight /= sum;
  }

  std::size_t rows_, columns_, width_;
  std::vector<double> cells_;
  std::vector<std::size_t> basis_;
  std::size_t pivots_ = 0;
};

}  // namespace

Equilibrium solve_game(const std::vector<double>& values, std::size_t rows, std::size_t columns,
                       std::size_t most_pivots) {
  Tableau tableau(values, rows, columns);
  for (std::size_t i = 0; i < most_pivots && tableau.pivot(); ++i) {
  }
  return tableau.weights();
}

}  // namespace hipress::planner
