#include "traces/timeline.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace hipress::traces {

void require_same_graph(const casync::TaskGraph& graph, const Timeline& timeline) {
  if (timeline.start.size() != graph.tasks() || timeline.end.size() != graph.tasks()) {
    throw std::invalid_argument("timeline '" + timeline.title + "' holds " +
                                std::to_string(timeline.start.size()) + " starts and " +
                                std::to_string(timeline.end.size()) + " ends for a graph of " +
                                std::to_string(graph.tasks()) + " tasks");
  }
}

Picoseconds makespan(const Timeline& timeline) {
  if (timeline.end.empty()) return Picoseconds{};
  return *std::max_element(timeline.end.begin(), timeline.end.end());
}

std::vector<KindComparison> compare_by_kind(const casync::TaskGraph& graph,
                                            const Timeline& predicted, const Timeline& measured) {
  require_same_graph(graph, predicted);
  require_same_graph(graph, measured);
  struct Sum {
    std::size_t tasks = 0;
    Picoseconds predicted{}, measured{};
  };
  std::array<Sum, casync::kKinds> sums;
  for (casync::TaskId id = 0; id < graph.tasks(); ++id) {
    Sum& sum = sums[static_cast<std::size_t>(graph[id].kind)];
    ++sum.tasks;
    sum.predicted += predicted.end[id] - predicted.start[id];
    sum.measured += measured.end[id] - measured.start[id];
  }
  std::vector<KindComparison> rows;
  for (std::size_t kind = 0; kind < sums.size(); ++kind) {
    const Sum& sum = sums[kind];
    if (sum.tasks == 0) continue;
    rows.push_back({static_cast<casync::Kind>(kind), sum.tasks, casync::to_seconds(sum.predicted),
                    casync::to_seconds(sum.measured)});
  }
  return rows;
}

}  // namespace hipress::traces
