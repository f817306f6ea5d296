#pragma once

#include <array>
#include <vector>

#include "casync/task_graph.hpp"
#include "traces/timeline.hpp"

namespace hipress::sim {

/// The chain of tasks that decides when the iteration ends, in order of time: from a task that
/// nothing held up to the task that ends last. Each step follows the one before because it is its
/// successor in the graph, or because both need one stream or port and the later one had to wait
/// for it. Gaps are messages on the wire (between a Send and its Recv). Empty for a graph without
/// tasks. `timeline` is the one that simulate() recorded of this graph.
std::vector<casync::TaskId> critical_path(const casync::TaskGraph& graph,
                                          const traces::Timeline& timeline);

/// How long a path was in tasks of each kind, and between them.
struct PathTimes {
  std::array<casync::Picoseconds, casync::kKinds> by_kind{};
  casync::Picoseconds wire{};  ///< between a Send and its Recv
};

/// The times of a critical path from `begin` to the end of its last task. If `begin` is 0, they
/// show where the iteration's time goes; if it is the end of computation, where the time of exposed
/// communication goes. Their sum is the length of that span.
PathTimes path_times(const casync::TaskGraph& graph, const traces::Timeline& timeline,
                     const std::vector<casync::TaskId>& path, casync::Picoseconds begin);

}  // namespace hipress::sim
