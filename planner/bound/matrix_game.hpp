#pragma once

#include <cstddef>
#include <vector>

namespace hipress::planner {

/// Equilibrium of a two-player zero-sum game. The row player maximises the value, the column player
/// minimises it. The weights of each player are at least 0 and sum up to 1.
struct Equilibrium {
  std::vector<double> rows, columns;
};

/// Solves the game by the simplex method, up to rounding errors. After `most_pivots` pivots it
/// stops with weights that are valid but not optimal. `values` holds value(row, column) row by row,
/// for at least one row and one column.
Equilibrium solve_game(const std::vector<double>& values, std::size_t rows, std::size_t columns,
                       std::size_t most_pivots = 2000);

}  // namespace hipress::planner
