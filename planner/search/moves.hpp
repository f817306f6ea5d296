#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "planner/timing/evaluator.hpp"

namespace hipress::planner {

/// A change of a candidate: other options for some gradients, and possibly another scheme.
struct Move {
  struct Change {
    std::uint32_t gradient;
    std::uint16_t option;
  };
  std::vector<Change> changes = {};
  std::int32_t scheme = -1;  ///< -1: the scheme stays
};

Candidate apply(const Move& move, const Candidate& candidate);

/// Moves to neighbours of a candidate. Gradients of equal size form a class.
class Neighbourhoods {
 public:
  Neighbourhoods(const Problem& problem, const Choices& choices);

  /// Kind of move. Its function lists moves from `candidate`, in an order drawn with `draws`.
  using Draws = std::mt19937_64;
  struct Row {
    std::string_view name;
    std::string_view help;
    std::vector<Move> (Neighbourhoods::*moves)(const Candidate& candidate, Draws& draws) const;
  };
  /// Kinds of moves, the most promising first; adding one is one row.
  static std::span<const Row> rows();

  /// A random move out of a local optimum.
  Move kick(const Candidate& candidate, Draws& draws) const;

  /// Index of the option of gradient g with the same decision, or -1.
  std::int32_t find(std::size_t g, const casync::Decision& decision) const;
  /// Schemes without batches; pattern simulations cannot model batches.
  const std::vector<std::uint32_t>& schemes() const { return schemes_; }

 private:
  struct SizeClass {
    std::vector<std::uint32_t> gradients;     ///< in the order of backward
    std::vector<casync::Decision> decisions;  ///< options of at least one of them
  };
  std::vector<Move> scheme_moves(const Candidate& candidate, Draws& draws) const;
  std::vector<Move> class_moves(const Candidate& candidate, Draws& draws) const;
  std::vector<Move> part_moves(const Candidate& candidate, Draws& draws) const;
  std::vector<Move> single_moves(const Candidate& candidate, Draws& draws) const;
  std::vector<Move> pair_moves(const Candidate& candidate, Draws& draws) const;

  /// Moves of two gradients to any options; empty if there are too many.
  std::vector<Move> all_pairs(const Candidate& candidate) const;

  /// Sets gradients `first` to `last` - 1 of the class to `decision`, if they have it.
  Move set(const Candidate& candidate, const SizeClass& size, std::size_t first, std::size_t last,
           const casync::Decision& decision) const;

  const Choices& choices_;
  std::vector<std::uint32_t> schemes_;
  std::vector<SizeClass> classes_;  ///< the most elements first
};

}  // namespace hipress::planner
