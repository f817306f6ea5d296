#include "runtime/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <tuple>

namespace hipress::runtime {
namespace {

using casync::Kind;
using casync::Task;
using casync::TaskGraph;
using casync::TaskId;

/// Alignment of messages: a cache line, so that threads do not share one. Codecs need 16 bytes.
constexpr std::int64_t kMessageAlignment = 64;

std::int64_t message_aligned(std::int64_t bytes) {
  return casync::round_up(bytes, kMessageAlignment);
}

void require_codec(const TaskGraph& graph, TaskId id, const plans::ResolvedPlan& plan) {
  const std::int8_t algorithm = graph[id].algorithm;
  const bool needed = graph[id].kind == Kind::kEncode || graph[id].kind == Kind::kDecode ||
                      casync::casts(graph[id]);
  const bool known = algorithm >= 0 && static_cast<std::size_t>(algorithm) < plan.codecs.size();
  if (needed && !known) {
    throw std::invalid_argument("task graph: " + casync::describe(graph, id) +
                                " is of an algorithm that the plan lacks");
  }
}

/// Throws std::invalid_argument unless the messages of a casting AllReduce can be added and have
/// the expected length.
void require_cast(const TaskGraph& graph, TaskId id, const kernels::Codec& codec,
                  std::int64_t elements) {
  if (!codec.traits().half_precision) {
    throw std::invalid_argument("task graph: " + casync::describe(graph, id) +
                                " is of an algorithm whose messages cannot be added");
  }
  if (graph[id].amount == codec.encoded_bytes(elements)) return;
  throw std::invalid_argument(fmt::format(
      "task graph: {} has the amount {}, but its {} elements "
      "are encoded in {} bytes",
      casync::describe(graph, id), graph[id].amount, elements, codec.encoded_bytes(elements)));
}

/// True for an edge to or from the Join of an all-reduce. Such edges between nodes are skipped, as
/// the library itself makes all nodes wait.
bool belongs_to_collective(const TaskGraph& graph, const Task& before, const Task& after) {
  return graph.unit_of(before) == graph.unit_of(after) &&
         (before.kind == Kind::kJoin || after.kind == Kind::kJoin);
}

}  // namespace

Program::Program(const TaskGraph& graph, const models::Model& model,
                 const plans::ResolvedPlan& plan, std::uint32_t node)
    : graph_(graph),
      model_(model),
      plan_(plan),
      node_(node),
      layout_(casync::make_layout(model, plan.plan)) {
  backward_.assign(model.gradients.size(), kNoIndex);
  add_tasks(read_dataflow(graph));
  add_batches();
  add_successors();
  assign_order();
}

std::string Program::describe(const LocalTask& task) const {
  const std::uint32_t unit = task.task.gradient;
  const bool named = unit < layout_.units.size();
  return casync::describe(graph_, task.id, named ? layout_.units[unit].name : "");
}

void Program::add_tasks(const Dataflow& flow) {
  local_index_.assign(graph_.tasks(), kNoIndex);
  for (TaskId id = 0; id < graph_.tasks(); ++id) {
    const Task& task = graph_[id];
    if (task.node != node_) continue;
    const auto index = static_cast<std::uint32_t>(tasks_.size());
    local_index_[id] = index;
    tasks_.push_back({.task = task, .id = id, .slice = {}});
    if (is_computation(task)) {
      add_computation(index);
      continue;
    }
    if (casync::is_local(task)) {
      throw std::invalid_argument("task graph: " + casync::describe(graph_, id) +
                                  ": nodes of several GPUs can be simulated, but not run; plan for "
                                  "one GPU per node");
    }
    require_codec(graph_, id, plan_);
    LocalTask& local = tasks_.back();
    local.slice = slice_of(graph_, id, layout_);
    if (const kernels::Codec* const cast = cast_of(local)) {
      require_cast(graph_, id, *cast, local.slice.elements);
    }
    if (flow.fills_message[id]) {
      const std::int64_t capacity =
          task.kind == Kind::kEncode
              ? plan_.codecs[static_cast<std::size_t>(task.algorithm)]->encoded_bytes(
                    local.slice.elements)
              : task.amount;
      add_message(index, capacity);
    } else if (flow.source[id] != casync::kNoIndex && graph_[flow.source[id]].node == node_) {
      local.message = tasks_[local_index_[flow.source[id]]].message;
    }
    local.first_gathered = static_cast<std::uint32_t>(gathered_.size());
    if (const auto from = flow.gathered.find(id); from != flow.gathered.end()) {
      for (const TaskId writer : from->second) {
        gathered_.push_back(tasks_[local_index_[writer]].message);
      }
    }
    local.end_gathered = static_cast<std::uint32_t>(gathered_.size());
    if (task.kind == Kind::kAllReduce) collectives_.push_back(index);
    auto& transfers = task.kind == Kind::kSend ? sends_ : receives_;
    if (task.kind == Kind::kSend || task.kind == Kind::kRecv) {
      local.transfer = static_cast<std::uint32_t>(transfers.size());
      transfers.push_back(index);
    }
  }
}

void Program::add_batches() {
  for (LocalTask& local : tasks_) {
    local.first_member = static_cast<std::uint32_t>(members_.size());
    for (const TaskId member : batch_members(graph_, local.id)) {
      if (graph_[member].node != node_) {
        throw std::invalid_argument("task graph: " + casync::describe(graph_, member) +
                                    " is batched with a task of another node");
      }
      members_.push_back(local_index_[member]);
    }
    local.end_member = static_cast<std::uint32_t>(members_.size());
  }
}

void Program::add_computation(std::uint32_t index) {
  const Task& task = tasks_[index].task;
  if (is_stepped()) {
    computation_.push_back(index);
    if (task.kind == Kind::kBackward && task.gradient < backward_.size()) {
      backward_[task.gradient] = index;
    }
    return;
  }
  computed_ += casync::Picoseconds(task.amount);
  if (task.kind == Kind::kForward) {
    if (!schedule_.empty()) {
      throw std::invalid_argument("task graph: " + describe(tasks_[index]) +
                                  " comes after a Backward; a replay starts with backward");
    }
    forward_ = computed_;
    return;
  }
  if (task.gradient >= backward_.size() || backward_[task.gradient] != kNoIndex) {
    throw std::invalid_argument("task graph: " + describe(tasks_[index]) +
                                " is of an unknown gradient, or that has a Backward already");
  }
  backward_[task.gradient] = index;
  const auto after_start =
      std::chrono::duration_cast<std::chrono::nanoseconds>(computed_ - forward_);
  schedule_.push_back({task.gradient, after_start});
}

void Program::add_message(std::uint32_t index, std::int64_t capacity) {
  tasks_[index].message = static_cast<std::uint32_t>(messages_.size());
  messages_.push_back({arena_bytes_, capacity});
  arena_bytes_ += message_aligned(capacity);
}

void Program::add_successors() {
  for (TaskId id = 0; id < graph_.tasks(); ++id) {
    const std::uint32_t from = local_index_[id];
    if (from != kNoIndex)
      tasks_[from].first_successor = static_cast<std::uint32_t>(successors_.size());
    for (const TaskId next : casync::successors(graph_, id)) {
      const std::uint32_t to = local_index_[next];
      if (to == kNoIndex) continue;
      if (is_computation(tasks_[to].task)) {
        if (is_computation(graph_[id])) continue;
        if (!is_stepped())
          throw std::invalid_argument("task graph: " + describe(tasks_[to]) + " waits for " +
                                      casync::describe(graph_, id) +
                                      "; the executor replays computation from a clock");
      }
      if (from == kNoIndex && belongs_to_collective(graph_, graph_[id], tasks_[to].task)) continue;
      if (from == kNoIndex && graph_[id].kind != Kind::kSend) {
        throw std::invalid_argument("task graph: " + describe(tasks_[to]) + " waits for " +
                                    casync::describe(graph_, id) + "; only a Send crosses nodes");
      }
      ++tasks_[to].waits_for;
      if (from != kNoIndex) successors_.push_back(to);
    }
    if (from != kNoIndex)
      tasks_[from].end_successor = static_cast<std::uint32_t>(successors_.size());
  }
}

std::uint32_t Program::backward_of(std::uint32_t gradient) const {
  if (gradient < backward_.size() && backward_[gradient] != kNoIndex) return backward_[gradient];
  throw std::invalid_argument(
      fmt::format("gradient {} has no Backward task on node {}", gradient, node_));
}

void Program::assign_order() {
  std::vector<std::uint32_t> by_order(tasks_.size());
  std::iota(by_order.begin(), by_order.end(), 0u);
  const auto key = [this](std::uint32_t index) {
    const LocalTask& local = tasks_[index];
    return std::tuple(local.task.gradient, local.task.peer_offset, local.task.partition,
                      local.task.kind, local.id);
  };
  std::sort(by_order.begin(), by_order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  for (std::uint32_t place = 0; place < by_order.size(); ++place) {
    tasks_[by_order[place]].order = place;
  }
}

int collectives_of(const casync::TaskGraph& graph) {
  for (casync::TaskId id = 0; id < graph.tasks(); ++id) {
    if (graph[id].kind == casync::Kind::kAllReduce) return 1;
  }
  return 0;
}

}  // namespace hipress::runtime
