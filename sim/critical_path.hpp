#pragma once

#include <array>
#include <vector>

#include "casync/task_graph.hpp"
#include "traces/timeline.hpp"

namespace hipress::sim {

/// Chain of tasks that determines the iteration's end, in order of time: from a task that nothing
/// delayed to the task that ends last. Each task follows the previous one because it is its
/// successor in the graph, or because it waited for a stream or port that the previous one held.
/// Gaps are messages on the wire (between a Send and its Recv). Empty for a graph without tasks.
/// `timeline` must be simulate()'s record of this graph.
std::vector<casync::TaskId> critical_path(const casync::TaskGraph& graph,
                                          const traces::Timeline& timeline);

/// Time of a path by kind of task, and between tasks.
struct PathTimes {
  std::array<casync::Picoseconds, casync::kKinds> by_kind{};
  casync::Picoseconds wire{};  ///< time between a Send and its Recv
};

/// Splits the time from `begin` to the end of a critical path's last task. With 0 as `begin`, the
/// parts show where the iteration's time goes; with the end of computation, where the exposed
/// communication goes.
PathTimes path_times(const casync::TaskGraph& graph, const traces::Timeline& timeline,
                     const std::vector<casync::TaskId>& path, casync::Picoseconds begin);

}  // namespace hipress::sim
