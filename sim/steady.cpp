#include "sim/steady.hpp"

#include <algorithm>
#include <stdexcept>

namespace hipress::sim {

using casync::Picoseconds;

SteadyState steady_state(const casync::TaskGraph& graph, const traces::Timeline& timeline,
                         int iterations) {
  if (iterations < 2) throw std::invalid_argument("a steady state needs at least 2 iterations");
  traces::require_same_graph(graph, timeline);
  // Computation is a chain on every node, so its ends in order of time are those in order of tasks.
  std::vector<std::vector<Picoseconds>> ends(graph.orbits());
  for (casync::TaskId id = 0; id < graph.tasks(); ++id) {
    if (casync::is_computation(graph[id]))
      ends[graph.orbit(graph[id].node)].push_back(timeline.end[id]);
  }
  const auto count = static_cast<std::size_t>(iterations);
  std::vector<Picoseconds> computed(count, Picoseconds{});
  for (std::vector<Picoseconds>& of_node : ends) {
    std::sort(of_node.begin(), of_node.end());
    const std::size_t tasks = of_node.size() / count;
    for (std::size_t i = 0; i < count; ++i) {
      computed[i] = std::max(computed[i], of_node.at((i + 1) * tasks - 1));
    }
  }
  SteadyState state;
  for (std::size_t i = 1; i < count; ++i) state.periods.push_back(computed[i] - computed[i - 1]);
  const std::size_t half = (count - 1) / 2;
  const auto averaged = static_cast<std::int64_t>(count - 1 - half);
  state.period = Picoseconds((computed.back() - computed[half]).count() / averaged);
  const std::size_t last = state.periods.size() - 1;
  state.settled = last > 0 && state.periods[last] == state.periods[last - 1];
  if (state.settled) state.period = state.periods[last];
  return state;
}

}  // namespace hipress::sim
