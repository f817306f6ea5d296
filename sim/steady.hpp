#pragma once

#include <vector>

#include "casync/task_graph.hpp"
#include "traces/timeline.hpp"

namespace hipress::sim {

/// Steady state of back-to-back iterations.
struct SteadyState {
  /// Time of an iteration: the last of `periods` if settled, else the mean over their last half.
  casync::Picoseconds period{};
  /// Times between the ends of consecutive iterations' computation, on the slowest node.
  std::vector<casync::Picoseconds> periods;
  bool settled = false;  ///< the last two periods are equal to the picosecond
  /// Time of an iteration's forward and backward tasks, without waiting: the mean over the
  /// iterations of `period`, on the node where it is longest. At most `period`: jitter can push the
  /// mean beyond.
  casync::Picoseconds compute{};
  casync::Picoseconds forward{};  ///< forward tasks alone, on the node where they are shortest
};

/// Steady state of a graph of `iterations` iterations (casync::expand_back_to_back; at least 2),
/// from its timeline. An iteration's length shows only in the next iteration, so the last
/// synchronisation does not count.
SteadyState steady_state(const casync::TaskGraph& graph, const traces::Timeline& timeline,
                         int iterations);

}  // namespace hipress::sim
