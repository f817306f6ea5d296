#pragma once

#include <cstddef>
#include <vector>

namespace hipress::planner {

/// Equilibrium of a two-player zero-sum game. The row player maximises the value, the column player
/// minimises it. Weights are not negative and sum up to 1.
struct Equilibrium {
  std::vector<double> rows, columns;
};

/// Solves the game with the simplex method, to rounding or for at most `most_pivots` pivots; the
/// weights are valid in both cases. `values` holds value(row, column) row by row, for at least one
/// row and one column.
Equilibrium solve_game(const std::vector<double>& values, std::size_t rows, std::size_t columns,
                       std::size_t most_pivots = 2000);

}  // namespace hipress::planner
