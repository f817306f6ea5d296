#pragma once

#include <cstdint>
#include <optional>

#include "planner/timing/workbench.hpp"

namespace hipress::planner {

/// Effect of changing one gradient's decision, with all else unchanged.
class Swaps {
 public:
  /// `swaps` is the approximate number of calls of cost_s() to come. If all of their simulations on
  /// the requested network would take too long, costs are estimated instead.
  Swaps(Workbench& bench, const Problem& problem, const TimedPlan& plan, std::size_t swaps);

  /// True if costs are estimates with the network model `port`.
  bool estimated() const { return estimated_; }

  /// Change of the iteration time, in seconds, if gradient g takes `option`; negative: shorter.
  /// Unset if the graph would be too large.
  std::optional<double> cost_s(std::size_t g, std::uint16_t option);

  /// The best option of gradient g other than its own: the one with the shortest (estimated)
  /// iteration, the first of equals. Unset if it has no other. In a bulk group K has no effect, so
  /// options of a member that differ only in K count as one.
  enum class Membership : std::uint8_t { kAlone, kInGroup };
  std::optional<std::uint16_t> runner_up(std::size_t g, Membership membership);

 private:
  Workbench& bench_;
  const double iteration_s_;
  bool estimated_ = false;
  std::int64_t base_ = 0;
};

}  // namespace hipress::planner
