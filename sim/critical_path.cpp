#include "sim/critical_path.hpp"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>

namespace hipress::sim {
namespace {

using casync::Picoseconds;
using casync::Task;
using casync::TaskGraph;
using casync::TaskId;

enum Resource : std::uint64_t {
  kCompute,
  kCodec,
  kEgress,
  kIngress,
  kLocal,
  kCollective,
  kResources
};

/// End of a task's use of a resource.
struct Release {
  std::uint64_t resource;
  Picoseconds end;
  TaskId task;
  auto operator<=>(const Release&) const = default;
};

std::uint64_t resource_of(std::uint32_t node, Resource resource) {
  return std::uint64_t{node} * kResources + resource;
}

/// Resources that a task occupies: up to two, in the order in which it takes them.
std::vector<std::uint64_t> resources(const TaskGraph& graph, const Task& task) {
  const std::uint32_t node = graph.representative(task.node);
  switch (casync::resource_of(task.kind)) {
    case casync::Resource::kCompute:
      return {resource_of(node, kCompute)};
    case casync::Resource::kCodec:
      return {resource_of(node, kCodec)};
    case casync::Resource::kLocal:
      return {resource_of(node, kLocal)};
    case casync::Resource::kCollective:
      return {resource_of(node, kCollective)};
    case casync::Resource::kPorts:
      return {resource_of(node, kEgress),
              resource_of(graph.representative(graph.peer(task)), kIngress)};
    case casync::Resource::kNone:
      break;
  }
  return {};
}

/// Finds the task for which another task waited.
class Causes {
 public:
  Causes(const TaskGraph& graph, const traces::Timeline& timeline)
      : graph_(graph), timeline_(timeline), last_predecessor_(graph.tasks()) {
    for (TaskId id = 0; id < graph.tasks(); ++id) {
      for (const TaskId next : casync::successors(graph, id)) note_predecessor(id, next);
      // A task of zero length delays no other task.
      if (timeline.end[id] == timeline.start[id]) continue;
      for (const std::uint64_t resource : resources(graph, graph[id])) {
        releases_.push_back({resource, timeline.end[id], id});
      }
    }
    std::sort(releases_.begin(), releases_.end());
  }

  /// Cause of a task's start: the predecessor that ended at that instant; else the task that
  /// released a resource at that instant; else the last predecessor to end.
  std::optional<TaskId> of(TaskId id) const {
    const std::optional<TaskId> predecessor = last_predecessor_[id];
    if (predecessor && timeline_.end[*predecessor] == timeline_.start[id]) return predecessor;
    for (const std::uint64_t resource : resources(graph_, graph_[id])) {
      const auto release = releaser(resource, id);
      if (release) return release;
    }
    return predecessor;
  }

 private:
  void note_predecessor(TaskId id, TaskId next) {
    std::optional<TaskId>& last = last_predecessor_[next];
    if (!last || timeline_.end[id] > timeline_.end[*last]) last = id;
  }

  /// Task that released the resource at the instant at which task `id` started. If several did
  /// (fair sharing), prefers one with the same receiver: its message was ahead in the queue.
  std::optional<TaskId> releaser(std::uint64_t resource, TaskId id) const {
    const Picoseconds instant = timeline_.start[id];
    const auto first =
        std::lower_bound(releases_.begin(), releases_.end(), Release{resource, instant, 0});
    std::optional<TaskId> found;
    for (auto release = first;
         release != releases_.end() && release->resource == resource && release->end == instant;
         ++release) {
      const bool same_pair = graph_[release->task].peer_offset == graph_[id].peer_offset;
      if (!found || same_pair) found = release->task;
      if (same_pair) break;
    }
    return found;
  }

  const TaskGraph& graph_;
  const traces::Timeline& timeline_;
  std::vector<std::optional<TaskId>> last_predecessor_;
  std::vector<Release> releases_;
};

}  // namespace

std::vector<TaskId> critical_path(const TaskGraph& graph, const traces::Timeline& timeline) {
  if (graph.tasks() == 0) return {};
  const Causes causes(graph, timeline);
  const auto last = std::max_element(timeline.end.begin(), timeline.end.end());
  std::optional<TaskId> step = static_cast<TaskId>(last - timeline.end.begin());
  std::vector<TaskId> path;
  for (; step; step = causes.of(*step)) path.push_back(*step);
  std::reverse(path.begin(), path.end());
  return path;
}

PathTimes path_times(const TaskGraph& graph, const traces::Timeline& timeline,
                     const std::vector<TaskId>& path, Picoseconds begin) {
  PathTimes times;
  Picoseconds reached = begin;
  for (const TaskId id : path) {
    const Picoseconds start = std::max(reached, timeline.start[id]);
    const Picoseconds end = std::max(start, timeline.end[id]);
    times.wire += start - reached;
    times.by_kind[static_cast<std::size_t>(graph[id].kind)] += end - start;
    reached = end;
  }
  return times;
}

}  // namespace hipress::sim
