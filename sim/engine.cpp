#include "sim/engine.hpp"

#include <fmt/format.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "io/error.hpp"

namespace hipress::sim {

Core::Core(const TaskGraph& task_graph, const TaskCosts& task_costs, const costs::Cluster& machines,
           const Options& run_options)
    : graph(task_graph),
      cluster(machines),
      options(run_options),
      works(task_costs, machines, task_graph.divisor),
      hierarchical(costs::is_hierarchical(machines)),
      shared_cores(machines.cores_per_host > 0),
      overlaps(machines.overlap != costs::OverlapFactors{}),
      sorter(task_graph) {
  result.bytes_sent.resize(graph.nodes, 0);
  if (options.record_timeline) {
    result.timeline.title = "predicted";
    result.timeline.start.resize(graph.tasks());
    result.timeline.end.resize(graph.tasks());
  }
  if (overlaps) sharing.set_overlap(cluster.overlap, graph.representatives());
  if (cluster.host_link) add_path(costs::Path::kWithinHost);
  add_path(costs::Path::kBetweenHosts);
  if (cluster.rack) add_path(costs::Path::kBetweenRacks);
  add_groups();
  if (!shared_cores) return;
  std::unordered_map<std::uint32_t, std::uint32_t> capacity_of_host;
  for (const std::uint32_t host : cluster.host) {
    const auto [entry, added] = capacity_of_host.try_emplace(host, 0);
    if (added) entry->second = sharing.add_capacity(cluster.cores_per_host);
    host_cores.push_back(entry->second);
  }
}

void Core::add_groups() {
  for (const casync::Group& group : graph.groups) {
    const std::string why = costs::unlike_groups(cluster, group.nodes, group.stride);
    if (!why.empty()) {
      throw io::InputError("a sharded schedule needs groups of nodes that are all alike, but " +
                           why);
    }
    const auto network = [&](costs::Pattern pattern) {
      return costs::group_network(cluster, group.nodes, group.stride, pattern);
    };
    groups.push_back({network(costs::Pattern::kRing), network(costs::Pattern::kExchange)});
  }
}

/// Messages share links by bytes per second, and cores by thread: a flow keeps one busy at each
/// end; with c core-seconds a byte, each runs at half of c·B cores.
void Core::add_path(costs::Path path) {
  PathCosts& on = paths[static_cast<std::size_t>(path)];
  const costs::LinkCosts& link = works.link(path);
  if (path == costs::Path::kBetweenRacks) on.use = link.bandwidth / cluster.link.bandwidth;
  for (const bool interrupts : {false, true}) {
    const double cores_of_flow = link.core_s_of_byte(interrupts) * link.bandwidth;
    on.weights[interrupts] = shared_cores && cores_of_flow > 0 ? 2 / cores_of_flow : 1 / on.use;
  }
}

Sharing::Place Core::place_of(const Task& task) const {
  const std::uint32_t node = graph.representative(task.node);
  switch (casync::resource_of(task.kind)) {
    case casync::Resource::kCompute:
      return {Sharing::Sort::kCompute, node, node};
    case casync::Resource::kPorts:
      return {Sharing::Sort::kTransfer, node, receiver(task)};
    case casync::Resource::kLocal:
    case casync::Resource::kCollective:
      return {Sharing::Sort::kTransfer, node, node};
    default:
      return {Sharing::Sort::kCodec, node, node};
  }
}

void Core::add_core_uses(const Task& send, const costs::LinkCosts& link, std::int64_t work,
                         Sharing::Uses& uses) const {
  // What was measured of a library's all-reduce includes its work on shared cores.
  if (send.kind == casync::Kind::kAllReduce) return;
  const double total_s = core_s(send, link);
  if (total_s <= 0 || work <= 0) return;
  const double cores = total_s / casync::to_seconds(casync::Picoseconds(work));
  const std::uint32_t here = host_cores[send.node];
  const std::uint32_t there = host_cores[receiver(send)];
  if (here == there) {
    uses.add(here, cores);
  } else {
    uses.add(here, cores / 2);
    uses.add(there, cores / 2);
  }
}

void report_impossible(const TaskGraph& graph, TaskId id) {
  const Task& task = graph[id];
  std::string what;
  if (task.node >= graph.nodes) {
    what = fmt::format("is on an unknown node: the graph has nodes 0 to {}", graph.nodes - 1);
  } else if (task.peer_offset >= graph.nodes) {
    what = fmt::format("has peer_offset {}; it must be less than the number of nodes, {}",
                       task.peer_offset, graph.nodes);
  } else {
    what = fmt::format("has a negative amount, {}", task.amount);
  }
  throw io::InputError(
      fmt::format("task graph: task {} ({}) {}", id, casync::to_string(task.kind), what));
}

void report_endless() {
  throw io::InputError(
      "the run takes more than 53 days, which times in picoseconds do not hold: give fewer "
      "iterations, or check speeds, bandwidths and the model's times");
}

void report_uncountable(const Task& task) {
  throw io::InputError(
      fmt::format("node {} sends more than 2^63 bytes, which a sum of bytes does not hold: check "
                  "the model's elements, or give fewer nodes",
                  task.node));
}

void report_stuck(const TaskGraph& graph, const std::vector<std::uint32_t>& waiting) {
  constexpr int kMaxNamed = 10;
  std::vector<TaskId> blocker(graph.tasks(), graph.tasks());
  std::uint32_t stuck = 0;
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    if (waiting[id] == 0) continue;
    ++stuck;
    for (const TaskId next : casync::successors(graph, id)) blocker[next] = id;
  }
  std::string message =
      fmt::format("the graph cannot finish: {} of {} tasks are stuck", stuck, graph.tasks());
  int named = 0;
  for (TaskId id = 0; id < graph.tasks() && named < kMaxNamed; ++id) {
    if (waiting[id] == 0 || blocker[id] == graph.tasks()) continue;
    ++named;
    message += fmt::format("\n  {} waits for {}", casync::describe(graph, id),
                           casync::describe(graph, blocker[id]));
  }
  throw io::RunError(message);
}

}  // namespace hipress::sim
