#pragma once

#include "sim/simulator.hpp"

namespace hipress::sim {

/// Reference simulator: follows docs/simulator.md word by word. At every instant it examines every
/// task again, and solves for the speeds of all that run, in exact rational arithmetic. Suits
/// graphs of a few hundred tasks. Returns every task's start and end.
traces::Timeline simulate_slowly(const casync::TaskGraph& graph, const TaskCosts& costs,
                                 const costs::Cluster& cluster, const Options& options);

}  // namespace hipress::sim
