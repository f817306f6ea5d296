#pragma once

#include "sim/scenario.hpp"

namespace hipress::sim {

/// Bytes sent by a node; the maximum over nodes.
struct Traffic {
  double bytes_per_step = 0;   ///< mean over a period
  double bytes_per_day = 0;    ///< if steps run back to back
  double peak_bits_per_s = 0;  ///< maximum over windows as long as a step's computation
};

/// Traffic in `result`, a simulation of `scenario` with a timeline. `step` is the time of a step,
/// `compute` that of its computation. Messages are sent at an even rate.
Traffic traffic(const Scenario& scenario, const casync::TaskGraph& graph, const Result& result,
                Picoseconds step, Picoseconds compute);

}  // namespace hipress::sim
