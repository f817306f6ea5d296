#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "costs/cluster.hpp"
#include "models/model.hpp"

namespace hipress::planner {

/// Ready times of gradients on the nodes, which depend on a node's speed.
struct ReadyTimes {
  /// Gradients in the order in which backward completes them.
  std::vector<std::uint32_t> order;
  std::vector<std::vector<double>> of_speed;  ///< ready times in ps, per speed and place in `order`
  std::vector<double> speeds;                 ///< distinct speeds, the fastest first
  std::vector<std::uint32_t> speed_of;        ///< per node: index into `speeds`
  std::vector<double> compute_end;            ///< end of computation in ps, per speed

  double first(std::size_t place) const { return of_speed.front()[place]; }
  double last(std::size_t place) const { return of_speed.back()[place]; }
};
ReadyTimes ready_times(const models::Model& model, const costs::Cluster& cluster);

/// True if a node's speed differs from 1: the simulator divides times by it, and rounds them.
bool rounds_by_speed(const ReadyTimes& ready);

}  // namespace hipress::planner
