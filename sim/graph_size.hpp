#pragma once

#include <cstdint>
#include <string>

#include "sim/scenario.hpp"

namespace hipress::sim {

/// Users of memory besides a graph, its recorded timeline and its critical path.
struct Beside {
  unsigned replicas = 0;       ///< replicas simulated at a time
  bool changed_graph = false;  ///< a second graph of the same size, as for sensitivities
};

/// Estimated size of a scenario's graph, before it is made.
struct GraphSize {
  double tasks = 0;  ///< exact for one iteration with pipelining; else an upper bound
  double bytes = 0;  ///< estimated memory of graph, simulation and critical path
};
/// Size of a scenario's graph. Throws std::invalid_argument as casync::make_layout() does.
GraphSize graph_size(const Scenario& scenario, casync::Folding folding, const Beside& beside = {});

/// Estimated memory in bytes of a graph of `tasks` tasks, and of each simulation of it without a
/// timeline, on top of the graph.
double bytes_of_graph(double tasks);
double bytes_of_simulation(double tasks);

/// Throws InputError for a graph that does not fit in `memory_bytes`, or has more tasks or edges
/// than their ids allow. `remedy` ends the message: it says how to make the graph smaller.
void require_room(const GraphSize& size, std::int64_t memory_bytes, const std::string& remedy);

}  // namespace hipress::sim
