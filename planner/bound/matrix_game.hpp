#pragma once

#include <cstddef>
#include <vector>

namespace hipress::planner {

/// An equilibrium of a game of two players: one picks a row and wants the value large, the other a
/// column and wants it small. Weights are not negative and sum up to 1.
struct Equilibrium {
  std::vector<double> rows, columns;
};

/// Solves the game with the simplex method, to rounding, or as far as `most_pivots` brings it (the
/// weights are then still weights). `value(row, column)` of all rows and columns, row by row; at
/// least one of each.
Equilibrium solve_game(const std::vector<double>& values, std::size_t rows, std::size_t columns,
                       std::size_t most_pivots = 2000);

}  // namespace hipress::planner
