#include "casync/graph_builder.hpp"

#include <functional>
#include <numeric>
#include <queue>
#include <stdexcept>
#include <string>

namespace hipress::casync {
namespace {

[[noreturn]] void reject_size(const char* what, std::size_t most) {
  throw std::invalid_argument(
      "task graph: more than " + std::to_string(most) + " " + what +
      ", which ids of 32 bits do not count; give fewer nodes or partitions, or fold it");
}

/// Counting sort of edges by source: linear time, and stable.
Edges compress(std::span<const std::pair<TaskId, TaskId>> edges, std::size_t tasks) {
  Edges rows{std::vector<std::uint32_t>(tasks + 1), std::vector<TaskId>(edges.size())};
  for (const auto& [before, after] : edges) ++rows.starts[before + 1];
  std::partial_sum(rows.starts.begin(), rows.starts.end(), rows.starts.begin());
  std::vector<std::uint32_t> next(rows.starts.begin(), rows.starts.end() - 1);
  for (const auto& [before, after] : edges) rows.columns[next[before]++] = after;
  return rows;
}

}  // namespace

TaskId GraphBuilder::add(const Task& task, const Operands& operands) {
  if (tasks_.size() >= most_) reject_size("tasks", most_);
  tasks_.push_back(task);
  if (named_) operands_.push_back(operands);
  return static_cast<TaskId>(tasks_.size() - 1);
}

std::uint32_t GraphBuilder::slice_of(const Task& task, std::int64_t bytes) {
  if (!named_) return kNoIndex;
  const auto next = static_cast<std::uint32_t>(buffers_.size());
  const auto [known, is_new] =
      slices_.try_emplace(std::tuple(task.gradient, task.partition, task.node), next);
  if (!is_new) return known->second;
  const auto whole = factors_.find(std::pair(task.gradient, task.node));
  buffers_.push_back({.node = task.node,
                      .bytes = bytes,
                      .part_of = whole == factors_.end() ? kNoIndex : whole->second});
  return known->second;
}

std::uint32_t GraphBuilder::factor(std::uint32_t unit, std::uint32_t node, std::int64_t bytes) {
  if (!named_) return kNoIndex;
  const auto next = static_cast<std::uint32_t>(buffers_.size());
  const auto [known, is_new] = factors_.try_emplace(std::pair(unit, node), next);
  if (is_new) {
    buffers_.push_back({.kind = Buffer::Kind::kFactor, .node = node, .bytes = bytes});
  }
  return known->second;
}

std::uint32_t GraphBuilder::message(std::uint32_t node, std::int8_t algorithm, std::int64_t bytes) {
  if (!named_) return kNoIndex;
  buffers_.push_back({Buffer::Kind::kMessage, algorithm, node, bytes});
  return static_cast<std::uint32_t>(buffers_.size() - 1);
}

std::uint32_t GraphBuilder::gathered(std::uint32_t node, std::int8_t algorithm,
                                     std::int64_t bytes) {
  if (!named_) return kNoIndex;
  const auto whole = static_cast<std::uint32_t>(buffers_.size());
  buffers_.push_back({.kind = Buffer::Kind::kGathered, .algorithm = algorithm, .node = node});
  for (std::uint32_t rank = 0; rank < nodes_; ++rank) {
    buffers_.push_back({Buffer::Kind::kMessage, algorithm, node, bytes, whole});
  }
  return whole;
}

void GraphBuilder::edge(TaskId before, TaskId after) {
  if (edges_.size() >= most_) reject_size("edges", most_);
  edges_.emplace_back(before, after);
}

void GraphBuilder::sort() {
  std::vector<std::uint32_t> waiting(tasks_.size(), 0);
  std::vector<std::size_t> first(tasks_.size() + 1, 0);
  for (const auto& [before, after] : edges_) {
    ++waiting[after];
    ++first[before + 1];
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<TaskId> next(edges_.size());
  std::vector<std::size_t> place(first.begin(), first.end() - 1);
  for (const auto& [before, after] : edges_) next[place[before]++] = after;

  std::priority_queue<TaskId, std::vector<TaskId>, std::greater<>> ready;
  for (TaskId id = 0; id < tasks_.size(); ++id) {
    if (waiting[id] == 0) ready.push(id);
  }
  std::vector<TaskId> new_id(tasks_.size());
  std::vector<Task> sorted;
  sorted.reserve(tasks_.size());
  std::vector<Operands> operands;
  operands.reserve(operands_.size());
  while (!ready.empty()) {
    const TaskId id = ready.top();
    ready.pop();
    new_id[id] = static_cast<TaskId>(sorted.size());
    sorted.push_back(tasks_[id]);
    if (named_) operands.push_back(operands_[id]);
    for (std::size_t i = first[id]; i < first[id + 1]; ++i) {
      if (--waiting[next[i]] == 0) ready.push(next[i]);
    }
  }
  if (sorted.size() < tasks_.size()) check(std::move(*this).build());  // names the cycle
  tasks_ = std::move(sorted);
  operands_ = std::move(operands);
  for (auto& [before, after] : edges_) {
    before = new_id[before];
    after = new_id[after];
  }
}

TaskGraph GraphBuilder::build() && {
  TaskGraph result;
  result.nodes = nodes_;
  result.divisor = nodes_;
  result.folded = folded_;
  result.first_group = first_group_;
  result.predecessors.resize(tasks_.size(), 0);
  for (const auto& [before, after] : edges_) ++result.predecessors[after];
  result.edges = compress(edges_, tasks_.size());
  result.all = std::move(tasks_);
  result.operands = std::move(operands_);
  result.buffers = std::move(buffers_);
  tasks_ = {};
  edges_ = {};
  return result;
}

}  // namespace hipress::casync
