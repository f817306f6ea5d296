#pragma once

#include <vector>

#include "casync/task_graph.hpp"
#include "traces/timeline.hpp"

namespace hipress::sim {

/// The chain of tasks that decides when the iteration ends, in order of time: from a task that
/// nothing held up to the last to end. Each step follows the one before because it is its successor
/// in the graph, or because both need one stream or port and it had to wait for it. Gaps are
/// messages on the wire (between a Send and its Recv). Empty for a graph without tasks. The
/// timeline is the one that simulate recorded of this graph.
std::vector<casync::TaskId> critical_path(const casync::TaskGraph& graph,
                                          const traces::Timeline& timeline);

}  // namespace hipress::sim
