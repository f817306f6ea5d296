#pragma once

#include <map>
#include <vector>

#include "casync/layout.hpp"
#include "casync/plan.hpp"
#include "casync/task_graph.hpp"

namespace hipress::runtime {

/// Which task's message each task takes over, and who fills one: the graph's operands, task by
/// task. Both the runtime and the reference follow it.
struct Dataflow {
  /// Per task, the task whose message it takes: a Recv takes its Send's; a Decode, a Merge and a
  /// compressed Send take that of the Encode or Recv before them. casync::kNoIndex for the others,
  /// and for a raw Send, which takes its node's slice.
  std::vector<casync::TaskId> source;
  /// Of Decodes of all nodes' messages: the tasks that leave these on its node, by rank.
  std::map<casync::TaskId, std::vector<casync::TaskId>> gathered;
  /// Per task, whether it fills a message buffer of its own: an Encode, an AllReduce that casts, a
  /// compressed Recv, and a raw Recv that a Merge waits for. Any other raw Recv fills the slice.
  std::vector<bool> fills_message;
};

/// Reads the dataflow from a graph that was expanded to be run. Throws std::invalid_argument for
/// any other graph; it names the task if a Decode, Merge or compressed Send has no message, a
/// message has two writers, or a task works on another node's memory.
Dataflow read_dataflow(const casync::TaskGraph& graph);

/// The Recv of a Send.
casync::TaskId receive_of(const casync::TaskGraph& graph, casync::TaskId send);

/// The slice of its unit that a task acts on: all of it if it codes factors; empty for a Join,
/// which acts on nothing. Throws std::invalid_argument that names the task if the unit or the
/// partition does not exist, or if the task's amount is not the slice's (a batch leader's: its
/// members' and its own).
casync::Slice slice_of(const casync::TaskGraph& graph, casync::TaskId id,
                       const casync::Layout& layout);

/// The tasks whose work a batch leader does besides its own, in id order; none for other tasks.
std::vector<casync::TaskId> batch_members(const casync::TaskGraph& graph, casync::TaskId leader);

}  // namespace hipress::runtime
