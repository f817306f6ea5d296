#pragma once

#include "sim/simulator.hpp"

namespace hipress::sim {

/// What docs/simulator.md says, word for word and without any cleverness: every task
/// is looked at again at every instant, and speeds are solved anew from all that runs, in exact
/// rational arithmetic. For graphs of a few hundred tasks. Gives every task's start and end.
traces::Timeline simulate_slowly(const casync::TaskGraph& graph, const TaskCosts& costs,
                                 const costs::Cluster& cluster, const Options& options);

}  // namespace hipress::sim
