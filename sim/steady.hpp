#pragma once

#include <vector>

#include "casync/task_graph.hpp"
#include "traces/timeline.hpp"

namespace hipress::sim {

/// What back-to-back iterations settle to.
struct SteadyState {
  casync::Picoseconds period{};  ///< between iterations: the mean over the last half of `periods`
  /// Between the ends of one iteration's computation and the next's, the slowest node's.
  std::vector<casync::Picoseconds> periods;
  bool settled = false;  ///< the last two periods are equal, to the picosecond
  /// Forward and backward tasks of one iteration as they were simulated, without what they waited
  /// for: the mean over the iterations that `period` is of, on the node where it is longest. At
  /// most `period`: where jitter pushes the mean beyond, `period` is given.
  casync::Picoseconds compute{};
  casync::Picoseconds forward{};  ///< the forward tasks alone, on the node where they are shortest
};

/// The steady state of a graph of that many iterations (casync::expand_back_to_back; at least 2),
/// from its timeline. The length of an iteration shows only in the iteration after it, so nothing
/// is said about the last synchronisation.
SteadyState steady_state(const casync::TaskGraph& graph, const traces::Timeline& timeline,
                         int iterations);

}  // namespace hipress::sim
