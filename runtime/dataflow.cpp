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

bool has_merge_behind(const TaskGraph& graph, TaskId id) {
  const auto next = casync::successors(graph, id);
  return std::any_of(next.begin(), next.end(),
                     [&](TaskId successor) { return graph[successor].kind == Kind::kMerge; });
}

bool fills_message(const TaskGraph& graph, TaskId id) {
  const Task& task = graph[id];
  if (task.kind == Kind::kEncode || casync::casts(task)) return true;
  if (task.kind != Kind::kRecv) return false;
  return task.algorithm != casync::kRaw || has_merge_behind(graph, id);
}

/// Edges may also only order tasks; a message goes to those of its own slice and form.
bool takes_message(const Task& task, const Task& source) {
  if (task.gradient != source.gradient || task.partition != source.partition ||
      task.algorithm != source.algorithm || task.node != source.node) {
    return false;
  }
  return task.algorithm == casync::kRaw ? task.kind == Kind::kMerge
                                        : task.kind == Kind::kDecode || task.kind == Kind::kSend;
}

bool needs_message(const Task& task) {
  return task.kind == Kind::kDecode || task.kind == Kind::kMerge || task.kind == Kind::kRecv ||
         (task.kind == Kind::kSend && task.algorithm != casync::kRaw);
}

}  // namespace

Dataflow derive_dataflow(const TaskGraph& graph) {
  Dataflow flow;
  flow.source.assign(graph.tasks(), kNoTask);
  flow.fills_message.assign(graph.tasks(), false);
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    const Task& task = graph[id];
    for (const TaskId next : casync::successors(graph, id)) {
      if (next <= id)
        reject(graph, next,
               "comes before " + casync::describe(graph, id) +
                   ", which it waits for; ids must be a topological order");
    }
    flow.fills_message[id] = fills_message(graph, id);
    if (!flow.fills_message[id] && task.kind != Kind::kSend) continue;
    for (const TaskId next : casync::successors(graph, id)) {
      const bool takes = task.kind == Kind::kSend ? graph[next].kind == Kind::kRecv
                                                  : takes_message(graph[next], task);
      if (!takes) continue;
      if (flow.source[next] != kNoTask) {
        reject(graph, next,
               "has two messages before it: " + casync::describe(graph, flow.source[next]) +
                   " and " + casync::describe(graph, id));
      }
      flow.source[next] = id;
    }
  }
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    if (needs_message(graph[id]) && flow.source[id] == kNoTask) {
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
  if (task.gradient >= layout.units.size() || layout.units[task.gradient].members.empty()) {
    reject(graph, id, "is of a gradient that the model or the plan lacks");
  }
  if (task.kind == Kind::kJoin) return {};
  const casync::Unit& unit = layout.units[task.gradient];
  if (task.partition >= static_cast<std::uint32_t>(unit.partitions)) {
    reject(graph, id, "is of a partition beyond the plan's " + std::to_string(unit.partitions));
  }
  const casync::Slice slice = casync::slice(unit.elements, unit.partitions, task.partition);
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
    // A successor in the leader's own slice may be a member of another batch.
    const bool own_slice = other.gradient == task.gradient && other.partition == task.partition;
    if ((other.flags & casync::kBatched) != 0 && other.kind == task.kind && !own_slice) {
      members.push_back(next);
    }
  }
  std::sort(members.begin(), members.end());
  return members;
}

}  // namespace hipress::runtime
