#pragma once

#include <vector>

#include "sim/scenario.hpp"

namespace hipress::sim {

/// Time that computation lost to concurrent work, by cause.
struct Slowdown {
  Picoseconds by_codecs{}, by_transfers{}, by_computation{};
  Picoseconds total() const { return by_codecs + by_transfers + by_computation; }
};

struct Slowdowns {
  std::vector<Slowdown> of_nodes;     ///< per node; all equal for a folded graph
  std::vector<Picoseconds> of_tasks;  ///< time lost per task; empty if nothing was slowed
  /// Node whose computation was slowed most; 0 if no node's was.
  std::uint32_t slowest() const;
};

/// Slowdowns in a simulated iteration. A computing task's loss is exact: its length less its work.
/// It is attributed to codec tasks, transfers and other computation: by their demand while demand
/// exceeded the host's cores or memory, and by overlap factors while overlaps slowed the device.
/// `graph` and `result` belong to the scenario; `result` must have its timeline. Throws
/// std::invalid_argument for the timeline of a different graph.
Slowdowns slowdowns(const Scenario& scenario, const casync::TaskGraph& graph, const Result& result);

}  // namespace hipress::sim
