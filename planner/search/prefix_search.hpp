#pragma once

#include <cstdint>
#include <vector>

#include "planner/bound/prefix_bound.hpp"

namespace hipress::planner {

/// Finds the best plan of one scheme on network `port`, by branch and bound over prefixes: the
/// options of the gradients that backward completes first. What a prefix does until the next
/// gradient is ready is simulated once for all plans that begin with it, and bounded by what is
/// left to do. Of prefixes that leave the same to do, one is enough.
///
/// The plans are divided into *parts*, some hundreds of prefixes in the order in which one thread
/// would come to them; threads take them in this order. Of equally fast plans the one in the first
/// part is taken, whoever finds it, so the plan does not depend on the number of threads.
class PrefixSearch {
 public:
  /// The scheme must have neither bulk groups nor batches, and Evaluator::has_exact() must hold.
  /// `work` is least_work() of the scheme. The arguments must outlive it, and evaluator.trim() must
  /// not be called meanwhile.
  PrefixSearch(Evaluator& evaluator, std::uint32_t scheme, const ReadyTimes& ready,
               const std::vector<std::vector<OptionWork>>& work);

  /// A plan of the scheme that takes less than `time` picoseconds, and no other less than it; none:
  /// returns false. Of the limits it minds `jobs` and `interrupted`.
  bool improve(Candidate& best, std::int64_t& time, const Limits& limits = {});

  /// Whether improve() looked everywhere; not where it was interrupted before.
  bool complete() const { return complete_; }

  // More threads may look at more plans and prefixes.
  std::int64_t simulated() const { return simulated_; }  ///< plans, to their end
  std::int64_t bounded() const { return bounded_; }      ///< prefixes

 private:
  const ReadyTimes& ready_;
  const std::uint32_t scheme_;
  PrefixBound bound_;
  std::int64_t simulated_ = 0, bounded_ = 0;
  bool complete_ = true;
};

}  // namespace hipress::planner
