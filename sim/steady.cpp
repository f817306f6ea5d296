#include "sim/steady.hpp"

#include <algorithm>
#include <stdexcept>

namespace hipress::sim {
namespace {

using casync::Picoseconds;
using casync::TaskGraph;
using casync::TaskId;

/// Computing tasks of each node. They form a chain, so the order of ids is that of time.
std::vector<std::vector<TaskId>> chains(const TaskGraph& graph) {
  std::vector<std::vector<TaskId>> of_node(graph.representatives());
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    if (casync::is_computation(graph[id]))
      of_node[graph.representative(graph[id].node)].push_back(id);
  }
  return of_node;
}

/// Total time of a chain's tasks, from task number `first` on.
struct Busy {
  Picoseconds forward{}, compute{};
};

Busy busy_from(const TaskGraph& graph, const traces::Timeline& timeline,
               const std::vector<TaskId>& chain, std::size_t first) {
  Busy busy;
  for (std::size_t i = first; i < chain.size(); ++i) {
    const Picoseconds length = timeline.end[chain[i]] - timeline.start[chain[i]];
    busy.compute += length;
    if (graph[chain[i]].kind == casync::Kind::kForward) busy.forward += length;
  }
  return busy;
}

}  // namespace

SteadyState steady_state(const TaskGraph& graph, const traces::Timeline& timeline, int iterations) {
  if (iterations < 2) throw std::invalid_argument("a steady state needs at least 2 iterations");
  traces::require_same_graph(graph, timeline);
  const std::vector<std::vector<TaskId>> of_node = chains(graph);
  const auto count = static_cast<std::size_t>(iterations);
  std::vector<Picoseconds> computed(count, Picoseconds{});
  for (const std::vector<TaskId>& chain : of_node) {
    const std::size_t tasks = chain.size() / count;
    for (std::size_t i = 0; i < count; ++i) {
      computed[i] = std::max(computed[i], timeline.end[chain.at((i + 1) * tasks - 1)]);
    }
  }
  SteadyState state;
  for (std::size_t i = 1; i < count; ++i) state.periods.push_back(computed[i] - computed[i - 1]);
  const std::size_t last = state.periods.size() - 1;
  state.settled = last > 0 && state.periods[last] == state.periods[last - 1];
  // `period` covers the iterations after this one.
  const std::size_t before = state.settled ? count - 2 : (count - 1) / 2;
  const auto averaged = static_cast<std::int64_t>(count - 1 - before);
  state.period = (computed.back() - computed[before]) / averaged;

  state.forward = state.period;
  for (const std::vector<TaskId>& chain : of_node) {
    const Busy busy = busy_from(graph, timeline, chain, chain.size() / count * (before + 1));
    state.compute = std::max(state.compute, busy.compute / averaged);
    state.forward = std::min(state.forward, busy.forward / averaged);
  }
  state.compute = std::min(state.compute, state.period);
  return state;
}

}  // namespace hipress::sim
