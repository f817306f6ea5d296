#pragma once

#include <cstdint>
#include <string>

#include "sim/scenario.hpp"

namespace hipress::sim {

/// What exists beside a graph, its recorded timeline and what explains it.
struct Beside {
  unsigned replicas = 0;       ///< that are simulated at a time
  bool changed_graph = false;  ///< another one of the same size, as for a sensitivity
};

/// How large a scenario's graph is, before it is made.
struct GraphSize {
  double tasks = 0;  ///< exact where one iteration is expanded with pipelining, else at most
  double bytes = 0;  ///< about the memory that making, simulating and explaining it takes
};
/// std::invalid_argument as casync::make_layout().
GraphSize graph_size(const Scenario& scenario, casync::Folding folding, const Beside& beside = {});

/// About the bytes of memory of a graph of so many tasks, and of each simulation of it beside the
/// graph, where no timeline is recorded.
double bytes_of_graph(double tasks);
double bytes_of_simulation(double tasks);

/// InputError for a graph that does not fit in that memory, or that has more tasks or edges than
/// ids can count. `remedy` says what would make it smaller.
void require_room(const GraphSize& size, std::int64_t memory_bytes, const std::string& remedy);

}  // namespace hipress::sim
