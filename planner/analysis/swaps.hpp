#pragma once

#include <cstdint>
#include <optional>

#include "planner/timing/workbench.hpp"

namespace hipress::planner {

/// Effect of changing one gradient's decision, with all else unchanged.
class Swaps {
 public:
  /// `swaps` is the approximate number of calls. If that many simulations on the requested network
  /// are too many, costs are estimated.
  Swaps(Workbench& bench, const Problem& problem, const TimedPlan& plan, std::size_t swaps);

  /// True if costs are estimates on network port.
  bool estimated() const { return estimated_; }

  /// Increase of the iteration time in seconds with gradient g's `option`; negative: shorter. None
  /// if the graph would be too large.
  std::optional<double> cost_s(std::size_t g, std::uint16_t option);

  /// Option of gradient g, other than its own, with the shortest (estimated) iteration; ties go to
  /// the first. None if it has no other. For a member of a bulk group, K has no effect, so options
  /// that differ only in K do not count as others.
  enum class Membership : std::uint8_t { kAlone, kInGroup };
  std::optional<std::uint16_t> runner_up(std::size_t g, Membership membership);

 private:
  Workbench& bench_;
  const double iteration_s_;
  bool estimated_ = false;
  std::int64_t base_ = 0;
};

}  // namespace hipress::planner
