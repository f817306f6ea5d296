#pragma once

#include <vector>

#include "casync/task_graph.hpp"
#include "traces/timeline.hpp"

namespace hipress::sim {

/// Steady state of back-to-back iterations.
struct SteadyState {
  /// Time of an iteration: the last of `periods` if settled, else the mean of their last half.
  casync::Picoseconds period{};
  /// Times between the ends of consecutive iterations' computation, on the slowest node.
  std::vector<casync::Picoseconds> periods;
  bool settled = false;  ///< the last two periods are equal to the picosecond
  /// Time of an iteration's forward and backward tasks, without waiting, on the node where it is
  /// longest: the mean over the iterations that `period` covers. Capped at `period`, which the mean
  /// can exceed with jitter.
  casync::Picoseconds compute{};
  casync::Picoseconds forward{};  ///< forward tasks alone, on the node where they are shortest
};

/// Steady state of a graph of at least 2 iterations (casync::expand_back_to_back()), from its
/// timeline. Times are between ends of computation, so the last synchronisation does not count.
SteadyState steady_state(const casync::TaskGraph& graph, const traces::Timeline& timeline,
                         int iterations);

}  // namespace hipress::sim
