#pragma once

#include <cstdint>

#include "casync/task_graph.hpp"
#include "costs/cluster.hpp"
#include "sim/run.hpp"
#include "sim/task_costs.hpp"

namespace hipress::sim {

/// Runs in virtual time a graph that casync::check() accepts, as it accepts every graph expanded
/// from a plan (here a Send without a Recv would end unnoticed). Deterministic to the byte.
/// Throws io::InputError for costs that are impossible (zero bandwidth, negative latency, NaN), a
/// task of more than kLongest_s and a run of more than 53 days; io::RunError that names up to ten
/// stuck tasks and what they wait for if the graph cannot finish; Stopped if Options::stop says
/// so.
Result simulate(const casync::TaskGraph& graph, const TaskCosts& costs,
                const costs::Cluster& cluster, const Options& options = {});

}  // namespace hipress::sim
