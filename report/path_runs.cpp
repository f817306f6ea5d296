#include "report/path_runs.hpp"

#include <algorithm>

namespace hipress::report {
namespace {

using casync::Picoseconds;
using casync::Task;
using casync::TaskGraph;
using casync::TaskId;

bool computes(const Task& task) {
  return casync::resource_of(task.kind) == casync::Resource::kCompute;
}

bool continues(const PathRun& run, const TaskGraph& graph, const Task& task) {
  if (run.is_computation || computes(task)) return run.is_computation && computes(task);
  return run.unit == graph.unit_of(task);
}

}  // namespace

std::vector<PathRun> path_runs(const TaskGraph& graph, const traces::Timeline& timeline,
                               const std::vector<TaskId>& path) {
  traces::require_same_graph(graph, timeline);
  std::vector<PathRun> runs;
  Picoseconds reached{};
  for (const TaskId id : path) {
    const Task& task = graph[id];
    if (runs.empty() || !continues(runs.back(), graph, task)) {
      runs.push_back({.is_computation = computes(task),
                      .unit = computes(task) ? 0 : graph.unit_of(task),
                      .start = reached,
                      .end = reached});
    }
    PathRun& run = runs.back();
    // Time in which no task of the path runs counts as wire, as in sim::path_times().
    const Picoseconds start = std::max(reached, timeline.start[id]);
    const Picoseconds end = std::max(start, timeline.end[id]);
    run.wire += start - reached;
    run.by_kind[static_cast<std::size_t>(task.kind)] += end - start;
    run.end = reached = end;
  }
  return runs;
}

}  // namespace hipress::report
