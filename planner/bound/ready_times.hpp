#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "costs/cluster.hpp"
#include "models/model.hpp"

namespace hipress::planner {

/// When gradients are complete, and on which nodes.
struct ReadyTimes {
  std::vector<std::uint32_t> order;           ///< gradients as backward completes them
  std::vector<std::vector<double>> of_speed;  ///< per speed and place in `order`, picoseconds
  std::vector<double> speeds;                 ///< distinct ones, the fastest first
  std::vector<std::uint32_t> speed_of;        ///< per node: index into `speeds`
  std::vector<double> compute_end;            ///< per speed

  double first(std::size_t place) const { return of_speed.front()[place]; }
  double last(std::size_t place) const { return of_speed.back()[place]; }
};
ReadyTimes ready_times(const models::Model& model, const costs::Cluster& cluster);

/// Whether times on these nodes are rounded when they are divided by a speed.
bool rounds_by_speed(const ReadyTimes& ready);

}  // namespace hipress::planner
