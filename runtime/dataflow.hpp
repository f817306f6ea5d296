#pragma once

#include <map>
#include <vector>

#include "casync/layout.hpp"
#include "casync/plan.hpp"
#include "casync/task_graph.hpp"

namespace hipress::runtime {

/// Operands of a task graph: the message that each task reads, and the tasks that write messages.
/// The runtime and the replay's reference both follow it.
struct Dataflow {
  /// For each task, the task whose message it reads. A Recv reads its Send's message; a Decode, a
  /// Merge and a compressed Send read that of the preceding Encode or Recv. The entry is
  /// casync::kNoIndex for other tasks, and for a raw Send, which reads its node's slice.
  std::vector<casync::TaskId> source;
  /// For a Decode of all nodes' messages, the tasks that write these on its node, by rank.
  std::map<casync::TaskId, std::vector<casync::TaskId>> gathered;
  /// Per task: true if it writes a message buffer of its own: an Encode, an AllReduce that casts, a
  /// compressed Recv, or a raw Recv that a Merge waits for. Any other raw Recv writes the slice.
  std::vector<bool> fills_message;
};

/// Reads the dataflow of a graph made by casync::expand_to_run(). Throws std::invalid_argument for
/// any other graph, naming the task if a Decode, Merge or compressed Send has no message, a message
/// has two writers, or a task works on another node's memory.
Dataflow read_dataflow(const casync::TaskGraph& graph);

/// Matching Recv of a Send.
casync::TaskId receive_of(const casync::TaskGraph& graph, casync::TaskId send);

/// Slice of its unit that a task acts on: the whole unit if the task codes factors; empty for a
/// Join. Throws std::invalid_argument naming the task if the unit or the partition does not exist,
/// or if the task's amount is not the slice's size (for a batch leader: the batch's size).
casync::Slice slice_of(const casync::TaskGraph& graph, casync::TaskId id,
                       const casync::Layout& layout);

/// Other members of a leader's batch, in id order; empty for tasks that lead none.
std::vector<casync::TaskId> batch_members(const casync::TaskGraph& graph, casync::TaskId leader);

}  // namespace hipress::runtime
