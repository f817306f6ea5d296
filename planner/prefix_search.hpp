#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "planner/prefix_bound.hpp"

namespace hipress::planner {

/// Finds the best plan of one shape on network `port`, by branch and bound over prefixes: the
/// options of the gradients that backward completes first. What a prefix does until the next
/// gradient is ready is simulated once for all plans that begin with it, and bounded by what is
/// left to do. Of prefixes that leave the same to do, one is enough.
class PrefixSearch {
 public:
  /// The shape must have neither bulk groups nor batches, and Evaluator::has_exact() must hold.
  /// `work` is least_work() of the shape. The arguments must outlive it, and evaluator.trim() must
  /// not be called meanwhile.
  PrefixSearch(Evaluator& evaluator, std::uint32_t shape, const ReadyTimes& ready,
               const std::vector<std::vector<OptionWork>>& work);

  /// A plan of the shape that takes less than `time` picoseconds, and no other less than it; none:
  /// returns false.
  bool improve(Candidate& best, std::int64_t& time);

  std::int64_t simulated() const { return simulated_; }  ///< plans, to their end
  std::int64_t bounded() const { return bounded_; }      ///< prefixes

 private:
  /// An option of the gradient that comes next, and what all plans take with it.
  struct Branch {
    const PrefixOption* option = nullptr;
    std::int64_t at_least = 0;
    TimelineState state;  ///< before the next gradient that is ready later
  };

  void visit(std::size_t place, const TimelineState& state);
  std::vector<Branch> branches(std::size_t place, const TimelineState& state);
  void push(std::size_t place, const PrefixOption& option);
  void pop();
  bool visited(const TimelineState& state);

  const ReadyTimes& ready_;
  PrefixBound bound_;
  Timeline timeline_;
  Schedule prefix_;
  Candidate candidate_;  // the prefix, and anything behind it
  Candidate best_;
  std::int64_t best_time_ = kNever;
  bool improved_ = false;
  std::set<std::pair<std::uint64_t, std::uint64_t>> visited_;
  std::int64_t simulated_ = 0, bounded_ = 0;
};

}  // namespace hipress::planner
