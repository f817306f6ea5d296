#pragma once

#include "sim/scenario.hpp"

namespace hipress::sim {

/// What a node sends, in bytes; the node that sends most.
struct Traffic {
  double bytes_per_step = 0;   ///< the mean over a period
  double bytes_per_day = 0;    ///< at the step's time
  double peak_bits_per_s = 0;  ///< the most in any stretch as long as a step's computation
};

/// Of a simulation of `scenario` with a timeline, whose step takes `step` and computes for
/// `compute`. A message is sent at an even rate from its start to its end.
Traffic traffic(const Scenario& scenario, const casync::TaskGraph& graph, const Result& result,
                Picoseconds step, Picoseconds compute);

}  // namespace hipress::sim
