#pragma once

#include <vector>

#include "sim/scenario.hpp"

namespace hipress::sim {

/// How much longer computation took than it takes alone, and beside whom.
struct Slowdown {
  Picoseconds by_codecs{}, by_transfers{}, by_computation{};
  Picoseconds total() const { return by_codecs + by_transfers + by_computation; }
};

struct Slowdowns {
  std::vector<Slowdown> of_nodes;     ///< per node; of a folded graph, all alike
  std::vector<Picoseconds> of_tasks;  ///< per task; empty: nothing was slowed
  /// The node whose computation was slowed most; 0 if none was.
  std::uint32_t slowest() const;
};

/// The slowdowns of an iteration that was simulated. What a computing task lost is exact: its
/// length less its work. The loss is shared out over the time in which the host's cores or memory,
/// or the device, were asked for more than they give: among the codec tasks, transfers and other
/// computation there, by how much of them each wants. `graph` and `result` are the scenario's;
/// `result` must have its timeline (std::invalid_argument for another timeline).
Slowdowns slowdowns(const Scenario& scenario, const casync::TaskGraph& graph, const Result& result);

}  // namespace hipress::sim
