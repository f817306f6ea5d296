#pragma once

#include <map>
#include <vector>

#include "casync/layout.hpp"
#include "casync/plan.hpp"
#include "casync/task_graph.hpp"

namespace hipress::runtime {

/// Operands of a task graph: the message that each task reads, and the tasks that write messages.
/// Both the runtime and the reference follow it.
struct Dataflow {
  /// For each task, the task whose message it reads. A Recv reads its Send's message; a Decode, a
  /// Merge and a compressed Send read that of the preceding Encode or Recv. casync::kNoIndex for
  /// the others, and for a raw Send, which reads its node's slice.
  std::vector<casync::TaskId> source;
  /// Per Decode of all nodes' messages: the tasks that write these messages on its node, by rank.
  std::map<casync::TaskId, std::vector<casync::TaskId>> gathered;
  /// Per task: true if it writes a message buffer of its own. These are an Encode, an AllReduce
  /// that casts, a compressed Recv, and a raw Recv that a Merge waits for. Any other raw Recv
  /// writes the slice.
  std::vector<bool> fills_message;
};

/// Reads the dataflow of a graph from casync::expand_to_run(). Throws std::invalid_argument for any
/// other graph. The error names the task if a Decode, Merge or compressed Send has no message, a
/// message has two writers, or a task works on another node's memory.
Dataflow read_dataflow(const casync::TaskGraph& graph);

/// Matching Recv of a Send.
casync::TaskId receive_of(const casync::TaskGraph& graph, casync::TaskId send);

/// Slice of its unit that a task acts on: all of it if it codes factors; empty for a Join.
/// std::invalid_argument names the task if the unit or the partition does not exist, or if the
/// task's amount differs from the slice's size (for a batch leader: the batch's).
casync::Slice slice_of(const casync::TaskGraph& graph, casync::TaskId id,
                       const casync::Layout& layout);

/// Members of a leader's batch besides itself, in id order; empty for other tasks.
std::vector<casync::TaskId> batch_members(const casync::TaskGraph& graph, casync::TaskId leader);

}  // namespace hipress::runtime
