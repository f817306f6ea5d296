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
      slow_links(machines.slow_links),
      options(run_options),
      works(task_costs, machines, task_graph.divisor),
      hierarchical(costs::is_hierarchical(machines)),
      shared_cores(machines.cores_per_host > 0),
      computing(run_options.computing ? *run_options.computing : task_graph.computing),
      overlaps(costs::slows(machines.overlap)),
      sorter(task_graph) {
  result.bytes_sent.resize(graph.nodes, 0);
  if (options.record_timeline) {
    result.timeline.title = "predicted";
    result.timeline.start.resize(graph.tasks());
    result.timeline.end.resize(graph.tasks());
  }
  if (overlaps) {
    sharing.set_overlap(costs::directed(cluster.overlap, graph.mix), graph.representatives());
  }
  if (cluster.host_link) add_path(costs::Path::kWithinHost);
  add_path(costs::Path::kBetweenHosts);
  for (std::size_t levels = 1; levels <= cluster.racks.size(); ++levels) {
    add_path(costs::between_racks(levels));
  }
  add_groups();
  if (!shared_cores) return;
  host_cores = add_to_hosts(cluster.cores_per_host);
  if (cluster.host_memory_bandwidth > 0 && computing.memory_traffic > 0) {
    host_memory = add_to_hosts(1);
  }
}

costs::LinkCosts Core::link_of(const Task& transfer) const {
  if (casync::is_of_group(transfer)) return network_of(transfer).link;
  if (transfer.kind == casync::Kind::kAllReduce) return works.ring();
  if (transfer.kind != casync::Kind::kSend) return cluster.link;
  const std::optional<std::uint32_t> slow = slow_link_of(transfer);
  return slow ? costs::slow_link_costs(cluster, *slow) : works.link(path_of(transfer));
}

std::vector<std::uint32_t> Core::add_to_hosts(double amount) {
  std::unordered_map<std::uint32_t, std::uint32_t> capacity_of_host;
  std::vector<std::uint32_t> capacities;
  for (const std::uint32_t host : cluster.host) {
    const auto [entry, added] = capacity_of_host.try_emplace(host, 0);
    if (added) entry->second = sharing.add_capacity(amount);
    capacities.push_back(entry->second);
  }
  return capacities;
}

/// A thread that could use a whole core has weight 1. One that pauses in between needs less than a
/// core, and has a higher weight, so it gets an equal share of the cores: contention slows it only
/// if that share is less than it needs.
double Core::add_host_uses(const Task& task, std::int64_t work, Sharing::Uses& uses) const {
  const bool computes = casync::is_computation(task);
  if (!host_memory.empty() && work > 0 && !casync::is_local(task)) {
    const double bytes_per_s =
        computes ? computing.memory_traffic
                 : works.memory_bytes(task) / casync::to_seconds(casync::Picoseconds(work));
    if (bytes_per_s > 0) {
      uses.add(host_memory[task.node], std::min(1.0, bytes_per_s / cluster.host_memory_bandwidth));
    }
  }
  const double cores = cores_of(task);
  if (cores <= 0) return 1;
  uses.add(host_cores[task.node], cores);
  return computes ? computing.threads / cores : 1;
}

std::int64_t Core::drawn(TaskId id, std::int64_t work) const {
  const Task& task = graph[id];
  const std::uint32_t nodes =
      casync::is_of_group(task) ? graph.groups[task.group].nodes : graph.nodes;
  const std::int64_t drawn = std::max(options.jitter->apply(work, options.draws, id),
                                      std::min(work, works.wire(task, nodes, link_of(task))));
  if (drawn > kLongest_ps) {
    report_too_long(task, graph.nodes, 1e-12 * static_cast<double>(drawn));
  }
  return drawn;
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
  if (groups.empty() || !cluster.of_machine) return;
  for (std::uint32_t i = 0; i < 2 * graph.representatives(); ++i) {
    group_ports.push_back(sharing.add_capacity(1));
  }
}

/// Messages share links by bytes per second, and cores by threads. A flow has one thread at each
/// end. At c core-seconds per byte and B bytes per second, each thread uses c·B/2 cores.
void Core::add_path(costs::Path path) {
  PathCosts& on = paths[static_cast<std::size_t>(path)];
  const costs::LinkCosts& link = works.link(path);
  if (path >= costs::Path::kBetweenRacks) {
    on.use = link.bandwidth / costs::card_link(cluster).bandwidth;
  }
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

double Core::add_core_uses(const Task& send, costs::Path path, std::int64_t work, double weight,
                           Sharing::Uses& uses) const {
  if (!shared_cores) return weight;
  const costs::LinkCosts& link = works.link(path);
  const bool collective = send.kind == casync::Kind::kAllReduce;
  // The measured time of a library's all-reduce includes its CPU work on idle cores, so that work
  // counts only if computation uses the cores.
  if (collective && computing.threads == 0) return weight;
  const double total_s =
      link.core_s(static_cast<double>(casync::bytes_sent(graph, send)), casync::interrupts(send));
  if (total_s <= 0 || work <= 0) return weight;
  double cores = total_s / casync::to_seconds(casync::Picoseconds(work));
  if (collective) {
    cores = std::min(cores, 1.0 * cluster.cores_per_host / costs::nodes_per_host(cluster));
    weight = 2 / cores;
  }
  const std::uint32_t here = host_cores[send.node];
  const std::uint32_t there = host_cores[receiver(send)];
  if (here == there) {
    uses.add(here, cores);
  } else {
    uses.add(here, cores / 2);
    uses.add(there, cores / 2);
  }
  return weight;
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
