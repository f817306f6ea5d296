#pragma once

#include <vector>

#include "casync/layout.hpp"
#include "casync/plan.hpp"
#include "casync/task_graph.hpp"

namespace hipress::runtime {

/// No task.
inline constexpr casync::TaskId kNoTask = UINT32_MAX;

/// Which task's data each task takes over, and where it puts it: what the graph's edges mean for
/// memory. Both the runtime and the reference follow it.
struct Dataflow {
  /// Per task, the task whose message it takes: a Recv takes its Send's; a Decode, a Merge and a
  /// compressed Send take that of the Encode or Recv before them. kNoTask for the others, and for a
  /// raw Send, which takes its node's slice.
  std::vector<casync::TaskId> source;
  /// Per task, whether it fills a message buffer of its own: an Encode, an AllReduce that casts, a
  /// compressed Recv, and a raw Recv that a Merge waits for. Any other raw Recv fills the slice.
  std::vector<bool> fills_message;
};

/// Derives the dataflow. Throws std::invalid_argument that names the task if a Decode, Merge or
/// compressed Send has no message before it, or more than one.
Dataflow derive_dataflow(const casync::TaskGraph& graph);

/// The Recv of a Send.
casync::TaskId receive_of(const casync::TaskGraph& graph, casync::TaskId send);

/// The slice of its unit that a task acts on; empty for a Join, which acts on nothing. Throws
/// std::invalid_argument that names the task if the unit or the partition does not exist, or if the
/// task's amount is not the slice's (a batch leader's: its members' and its own).
casync::Slice slice_of(const casync::TaskGraph& graph, casync::TaskId id,
                       const casync::Layout& layout);

/// The tasks whose work a batch leader does besides its own, in id order; none for other tasks.
std::vector<casync::TaskId> batch_members(const casync::TaskGraph& graph, casync::TaskId leader);

}  // namespace hipress::runtime
