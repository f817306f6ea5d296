#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "costs/cluster.hpp"
#include "models/model.hpp"

namespace hipress::planner {

/// Completion times of gradients, by node speed.
struct ReadyTimes {
  std::vector<std::uint32_t> order;           ///< gradients as backward completes them
  std::vector<std::vector<double>> of_speed;  ///< ps, per speed and place in `order`
  std::vector<double> speeds;                 ///< distinct speeds, the fastest first
  std::vector<std::uint32_t> speed_of;        ///< per node: index into `speeds`
  std::vector<double> compute_end;            ///< ps, per speed

  double first(std::size_t place) const { return of_speed.front()[place]; }
  double last(std::size_t place) const { return of_speed.back()[place]; }
};
ReadyTimes ready_times(const models::Model& model, const costs::Cluster& cluster);

/// True if simulated times on these nodes are rounded because a speed differs from 1.
bool rounds_by_speed(const ReadyTimes& ready);

}  // namespace hipress::planner
