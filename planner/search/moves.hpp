#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "planner/timing/evaluator.hpp"

namespace hipress::planner {

/// A change of a candidate: other options for some gradients, and perhaps another scheme.
struct Move {
  struct Change {
    std::uint32_t gradient;
    std::uint16_t option;
  };
  std::vector<Change> changes = {};
  std::int32_t scheme = -1;  ///< -1: as it was
};

Candidate apply(const Move& move, const Candidate& candidate);

/// What moves are made from: gradients of one size, as backward completes them.
class Neighbourhoods {
 public:
  Neighbourhoods(const Problem& problem, const Choices& choices);

  /// Moves of a sort that lead from `candidate` to others, in an order drawn with `draws`.
  using Draws = std::mt19937_64;
  struct Row {
    std::string_view name;
    std::string_view help;
    std::vector<Move> (Neighbourhoods::*moves)(const Candidate& candidate, Draws& draws) const;
  };
  /// The sorts in the order in which they are worth trying; adding one is one row.
  static std::span<const Row> rows();

  /// A random move that is worth to go on from where no single move is.
  Move kick(const Candidate& candidate, Draws& draws) const;

  /// The option of gradient g that decides the same, or -1.
  std::int32_t find(std::size_t g, const casync::Decision& decision) const;
  /// Schemes without batches, which simulations from patterns can tell apart.
  const std::vector<std::uint32_t>& schemes() const { return schemes_; }

 private:
  struct SizeClass {
    std::vector<std::uint32_t> gradients;     ///< as backward completes them
    std::vector<casync::Decision> decisions;  ///< that all or some of them may take
  };
  std::vector<Move> scheme_moves(const Candidate& candidate, Draws& draws) const;
  std::vector<Move> class_moves(const Candidate& candidate, Draws& draws) const;
  std::vector<Move> part_moves(const Candidate& candidate, Draws& draws) const;
  std::vector<Move> single_moves(const Candidate& candidate, Draws& draws) const;
  std::vector<Move> pair_moves(const Candidate& candidate, Draws& draws) const;

  /// Two gradients, each to anything; empty where these are too many.
  std::vector<Move> all_pairs(const Candidate& candidate) const;

  /// All of `gradients` from `first` to before `last` decide this, if they can; empty if nothing
  /// changes.
  Move set(const Candidate& candidate, const SizeClass& size, std::size_t first, std::size_t last,
           const casync::Decision& decision) const;

  const Choices& choices_;
  std::vector<std::uint32_t> schemes_;
  std::vector<SizeClass> classes_;  ///< the most elements first
};

}  // namespace hipress::planner
