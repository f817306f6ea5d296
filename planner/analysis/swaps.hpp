#pragma once

#include <cstdint>
#include <optional>

#include "planner/timing/workbench.hpp"

namespace hipress::planner {

/// What an iteration would gain or lose if one gradient's decision were another, all else as it is.
class Swaps {
 public:
  /// `swaps` is about how many will be asked for: where so many simulations on the network asked
  /// for are too many, differences are those of estimates.
  Swaps(Workbench& bench, const Problem& problem, const TimedPlan& plan, std::size_t swaps);

  /// Differences are of estimates, on network port.
  bool estimated() const { return estimated_; }

  /// Seconds that the iteration takes longer with gradient g's `option`; negative: shorter. None
  /// where the graph would be too large.
  std::optional<double> cost_s(std::size_t g, std::uint16_t option);

  /// The option of gradient g, other than its own, with the shortest (estimated) iteration: the
  /// first of equals; none if there is no other. For a member of a bulk group, K has no effect, so
  /// options that differ only in K do not count as others.
  enum class Membership : std::uint8_t { kAlone, kInGroup };
  std::optional<std::uint16_t> runner_up(std::size_t g, Membership membership);

 private:
  Workbench& bench_;
  const double iteration_s_;
  bool estimated_ = false;
  std::int64_t base_ = 0;
};

}  // namespace hipress::planner
