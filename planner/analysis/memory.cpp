#include "planner/analysis/memory.hpp"

#include <algorithm>
#include <vector>

#include "kernels/codec/codec.hpp"

namespace hipress::planner {
namespace {

using casync::Kind;
using casync::Task;
using casync::TaskGraph;
using casync::TaskId;

/// A received message that is not simply the slice (runtime/dataflow.hpp).
bool is_buffered(const TaskGraph& graph, TaskId receive) {
  if (graph[receive].algorithm != casync::kRaw) return true;
  const auto next = casync::successors(graph, receive);
  return std::any_of(next.begin(), next.end(),
                     [&](TaskId id) { return graph[id].kind == Kind::kMerge; });
}

/// Per algorithm, bytes of state per element that is encoded.
std::vector<std::int64_t> state_bytes(const std::vector<casync::Algorithm>& algorithms) {
  std::vector<std::int64_t> bytes;
  for (const casync::Algorithm& algorithm : algorithms) {
    const kernels::CodecTraits traits = kernels::make_codec(algorithm.name)->traits();
    const int arrays = traits.error_feedback ? traits.state_arrays : 0;
    bytes.push_back(arrays * static_cast<std::int64_t>(sizeof(float)));
  }
  return bytes;
}

/// Elements of an Encode's own slice: a batch leader's amount counts its members' too.
std::int64_t own_elements(const TaskGraph& graph, TaskId id) {
  const Task& task = graph[id];
  std::int64_t elements = task.amount;
  if ((task.flags & casync::kLeader) == 0) return elements;
  for (const TaskId next : casync::successors(graph, id)) {
    const Task& other = graph[next];
    const bool own_slice = other.gradient == task.gradient && other.partition == task.partition;
    if ((other.flags & casync::kBatched) != 0 && other.kind == task.kind && !own_slice) {
      elements -= other.amount;
    }
  }
  return elements;
}

}  // namespace

PlanMemory plan_memory(const TaskGraph& graph, const std::vector<casync::Algorithm>& algorithms) {
  const std::vector<std::int64_t> state = state_bytes(algorithms);
  std::vector<PlanMemory> nodes(graph.representatives());
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    const Task& task = graph[id];
    PlanMemory& node = nodes[graph.representative(task.node)];
    if (task.kind == Kind::kEncode) {
      const auto algorithm = static_cast<std::size_t>(task.algorithm);
      const std::int64_t elements = own_elements(graph, id);
      node.residual_bytes += state[algorithm] * elements;
      node.buffer_bytes += algorithms[algorithm].encoded_bytes(elements);
    } else if (task.kind == Kind::kRecv && is_buffered(graph, id)) {
      node.buffer_bytes += task.amount;
    }
  }
  PlanMemory most;
  for (const PlanMemory& node : nodes) {
    most.residual_bytes = std::max(most.residual_bytes, node.residual_bytes);
    most.buffer_bytes = std::max(most.buffer_bytes, node.buffer_bytes);
  }
  return most;
}

}  // namespace hipress::planner
