#include "runtime/dataflow.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace hipress::runtime {
namespace {

using casync::Kind;
using casync::Task;
using casync::TaskGraph;
using casync::TaskId;

[[noreturn]] void reject(const TaskGraph& graph, TaskId id, const std::string& message) {
  throw std::invalid_argument("task graph: " + casync::describe(graph, id) + " " + message);
}

bool needs_message(const Task& task) {
  if (casync::codes_factors(task) || casync::gathers(task)) return false;
  return task.kind == Kind::kDecode || task.kind == Kind::kMerge || task.kind == Kind::kRecv ||
         (task.kind == Kind::kSend && task.algorithm != casync::kRaw);
}

/// Writers of the messages that a Decode gathers, by rank. `writer` has the writer of each buffer.
std::vector<TaskId> gathered_by(const TaskGraph& graph, TaskId id,
                                const std::vector<TaskId>& writer) {
  const std::uint32_t whole = graph.operands[id].reads;
  const bool known = whole != casync::kNoIndex && whole + graph.nodes < graph.buffers.size() &&
                     graph.buffers[whole].kind == casync::Buffer::Kind::kGathered;
  if (!known) reject(graph, id, "gathers messages, but names no room for them");
  std::vector<TaskId> writers;
  for (std::uint32_t rank = 0; rank < graph.nodes; ++rank) {
    const std::uint32_t part = whole + 1 + rank;
    if (graph.buffers[part].part_of != whole || writer[part] == casync::kNoIndex) {
      reject(graph, id, "has no message of node " + std::to_string(rank) + " before it");
    }
    writers.push_back(writer[part]);
  }
  return writers;
}

}  // namespace

Dataflow read_dataflow(const TaskGraph& graph) {
  if (graph.operands.size() != graph.tasks()) {
    throw std::invalid_argument(
        "task graph: its tasks name no memory, so it can only be simulated; expand it to run");
  }
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    for (const TaskId next : casync::successors(graph, id)) {
      if (next > id) continue;
      reject(graph, next,
             "comes before " + casync::describe(graph, id) +
                 ", which it waits for; ids must be a topological order");
    }
  }
  Dataflow flow;
  flow.source.assign(graph.tasks(), casync::kNoIndex);
  flow.fills_message.assign(graph.tasks(), false);
  // Writer of each message buffer.
  std::vector<TaskId> writer(graph.buffers.size(), casync::kNoIndex);
  const auto is_message = [&](std::uint32_t buffer) {
    return buffer != casync::kNoIndex &&
           graph.buffers[buffer].kind == casync::Buffer::Kind::kMessage;
  };
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    const Task& task = graph[id];
    const auto [reads, writes] = graph.operands[id];
    for (const std::uint32_t buffer : {reads, writes}) {
      if (buffer == casync::kNoIndex) continue;
      if (buffer >= graph.buffers.size() || graph.buffers[buffer].node != task.node) {
        reject(graph, id, "works on memory that its node lacks");
      }
    }
    for (const TaskId next : casync::successors(graph, id)) {
      if (task.kind == Kind::kSend && graph[next].kind == Kind::kRecv) flow.source[next] = id;
    }
    if (is_message(reads)) {
      if (writer[reads] == casync::kNoIndex)
        reject(graph, id, "reads a message that nothing wrote before");
      flow.source[id] = writer[reads];
    }
    if (casync::gathers(task)) flow.gathered.emplace(id, gathered_by(graph, id, writer));
    if (is_message(writes)) {
      if (writer[writes] != casync::kNoIndex) {
        reject(graph, id,
               "writes the message of " + casync::describe(graph, writer[writes]) + ", too");
      }
      writer[writes] = id;
      flow.fills_message[id] = true;
    }
    if (needs_message(task) && flow.source[id] == casync::kNoIndex) {
      reject(graph, id, "has no message before it");
    }
  }
  return flow;
}

TaskId receive_of(const TaskGraph& graph, TaskId send) {
  for (const TaskId next : casync::successors(graph, send)) {
    if (graph[next].kind == Kind::kRecv) return next;
  }
  reject(graph, send, "has no Recv");
}

casync::Slice slice_of(const TaskGraph& graph, TaskId id, const casync::Layout& layout) {
  const Task& task = graph[id];
  const bool known =
      task.gradient < layout.units.size() &&
      (layout.is_factor(task.gradient) || !layout.units[task.gradient].members.empty());
  if (!known) {
    reject(graph, id, "is of a gradient that the model or the plan lacks");
  }
  if (task.kind == Kind::kJoin) return {};
  const casync::Unit& unit = layout.units[task.gradient];
  if (casync::codes_factors(task) != (unit.factors > 0)) {
    reject(graph, id, "and the plan do not agree on whether it is compressed in stages");
  }
  if (task.partition >= static_cast<std::uint32_t>(unit.slices())) {
    reject(graph, id, "is of a partition beyond the plan's " + std::to_string(unit.slices()));
  }
  const casync::Slice slice = casync::slice(unit.elements, unit.slices(), task.partition);
  std::int64_t amount = task.amount;
  for (const TaskId member : batch_members(graph, id)) amount -= graph[member].amount;
  const bool bytes =
      task.kind == Kind::kSend || task.kind == Kind::kRecv || task.kind == Kind::kAllReduce;
  const std::int64_t size = bytes ? sizeof(float) : 1;
  if (!(bytes && task.algorithm != casync::kRaw) && amount != slice.elements * size) {
    reject(graph, id,
           "has the amount " + std::to_string(amount) + ", but its slice has " +
               std::to_string(slice.elements) + " elements");
  }
  return slice;
}

std::vector<TaskId> batch_members(const TaskGraph& graph, TaskId leader) {
  std::vector<TaskId> members;
  const Task& task = graph[leader];
  if ((task.flags & casync::kLeader) == 0) return members;
  for (const TaskId next : casync::successors(graph, leader)) {
    const Task& other = graph[next];
    // A successor in the leader's own slice may belong to another batch, but not to this one.
    const bool own_slice = other.gradient == task.gradient && other.partition == task.partition;
    if ((other.flags & casync::kBatched) != 0 && other.kind == task.kind && !own_slice) {
      members.push_back(next);
    }
  }
  std::sort(members.begin(), members.end());
  return members;
}

}  // namespace hipress::runtime
