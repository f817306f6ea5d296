#include "sim/simulator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/error.hpp"
#include "sim/engine.hpp"
#include "sim/fair_network.hpp"
#include "sim/port_network.hpp"

namespace hipress::sim {
namespace {

void require(bool holds, const std::string& message) {
  if (!holds) throw io::InputError(message);
}

void check_link(const costs::LinkCosts& link, std::string_view name) {
  const auto time = [](double seconds) { return seconds >= 0 && seconds <= kLongest_s; };
  const auto rate = [](double bytes_per_s) {
    return bytes_per_s > 0 && std::isfinite(bytes_per_s);
  };
  require(rate(link.bandwidth), fmt::format("{}: bandwidth must be positive and finite, got {} B/s",
                                            name, link.bandwidth));
  require(rate(link.bandwidth_both_ways),
          fmt::format("{}: bandwidth_both_ways must be positive and finite, got {} B/s", name,
                      link.bandwidth_both_ways));
  require(time(link.overhead_s), fmt::format("{}: overhead must be 0 s to {:g} s, got {} s", name,
                                             kLongest_s, link.overhead_s));
  require(time(link.latency_s), fmt::format("{}: latency must be 0 s to {:g} s, got {} s", name,
                                            kLongest_s, link.latency_s));
  require(link.burst_bytes >= 0,
          fmt::format("{}: burst must not be negative, got {} bytes", name, link.burst_bytes));
  require(time(static_cast<double>(link.burst_bytes) / link.bandwidth),
          fmt::format("{}: a burst of {} bytes takes more than {:g} s at {} B/s", name,
                      link.burst_bytes, kLongest_s, link.bandwidth));
  require(time(link.core_s_per_byte) && time(link.core_s_per_message),
          fmt::format("{}: the CPU work of a transfer must not be negative", name));
  require(link.core_factor_interrupting >= 1 && std::isfinite(link.core_factor_interrupting),
          fmt::format("{}: core_factor_interrupting must be at least 1 and finite, got {}", name,
                      link.core_factor_interrupting));
}

void check_rack(const costs::RackCosts& rack) {
  require(rack.hosts > 0, "rack: hosts must be at least 1");
  require(rack.oversubscription > 0 && std::isfinite(rack.oversubscription),
          fmt::format("rack: oversubscription must be positive and finite, got {}",
                      rack.oversubscription));
  require(rack.latency_s >= 0 && rack.latency_s <= kLongest_s,
          fmt::format("rack: latency must be 0 s to {:g} s, got {} s", kLongest_s, rack.latency_s));
}

void check_overlap(const costs::OverlapFactors& overlap) {
  for (const double factor :
       {overlap.compute_codec, overlap.compute_transfer, overlap.codec_transfer}) {
    require(factor >= 1 && factor <= costs::kMaxOverlap,
            fmt::format("overlap: factors must be 1 to {:g}, got {}", costs::kMaxOverlap, factor));
  }
}

void check_slow_links(const costs::Cluster& cluster) {
  for (const costs::SlowLink& link : cluster.slow_links) {
    require(link.bandwidth > 0 && std::isfinite(link.bandwidth),
            fmt::format("slow_links: bandwidth must be positive and finite, got {} B/s",
                        link.bandwidth));
    require(link.latency_s >= 0 && link.latency_s <= kLongest_s,
            fmt::format("slow_links: latency must be 0 s to {:g} s, got {} s", kLongest_s,
                        link.latency_s));
  }
  require(cluster.slow_links.empty() || (!cluster.rack && cluster.link.burst_bytes == 0),
          "slow_links: not with racks, nor with bursts (link: {burst: 0B})");
}

/// Racks count the links of hosts, so nodes that share a host must share its link too.
void check_hosts(const costs::Cluster& cluster) {
  require(!cluster.rack || cluster.host_link || !costs::share_a_host(cluster),
          "rack: nodes that share a host need a host_link; those on other hosts share the host's "
          "link");
}

void check_gpus(const costs::Cluster& cluster) {
  require(cluster.gpus_per_node > 0, "gpus_per_node must be at least 1");
  if (cluster.gpus_per_node == 1) return;
  const costs::GpuLinkCosts& link = cluster.gpu_link;
  require(
      link.bandwidth > 0 && std::isfinite(link.bandwidth),
      fmt::format("gpu_link: bandwidth must be positive and finite, got {} B/s", link.bandwidth));
  require(link.overhead_s >= 0 && link.overhead_s <= kLongest_s,
          fmt::format("gpu_link: overhead must be 0 s to {:g} s, got {} s", kLongest_s,
                      link.overhead_s));
}

void check_cluster(const costs::Cluster& cluster, std::uint32_t nodes) {
  check_link(cluster.link, "link");
  if (cluster.host_link) check_link(*cluster.host_link, "host_link");
  if (cluster.rack) check_rack(*cluster.rack);
  check_overlap(cluster.overlap);
  require(cluster.core_turn_s >= 0 && cluster.core_turn_s <= costs::kLongestTurn_s,
          fmt::format("core_turn must be 0 s to {:g} s, got {} s", costs::kLongestTurn_s,
                      cluster.core_turn_s));
  require(cluster.nodes == nodes,
          fmt::format("the cluster has {} nodes, the plan {}: give the same number to both",
                      cluster.nodes, nodes));
  require(
      cluster.host.size() == nodes && cluster.compute_speed.size() == nodes,
      fmt::format("the cluster must name host and compute speed of each of its {} nodes", nodes));
  require(!costs::is_hierarchical(cluster) || cluster.link.burst_bytes == 0,
          "link: bursts are of nodes with a link of their own; with host_link or rack, give "
          "burst: 0B");
  check_hosts(cluster);
  check_slow_links(cluster);
  check_gpus(cluster);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const double speed = cluster.compute_speed[node];
    require(
        speed > 0 && std::isfinite(speed),
        fmt::format("compute speed of node {} must be positive and finite, got {}", node, speed));
  }
}

}  // namespace

Network parse_network(std::string_view name) {
  if (name == "port") return Network::kPort;
  if (name == "fair") return Network::kFair;
  throw io::InputError(fmt::format("unknown network {}; known are port, fair", io::quote(name)));
}

const char* to_string(Network network) { return network == Network::kPort ? "port" : "fair"; }

TaskCosts::TaskCosts(const costs::Profile& profile,
                     const std::vector<casync::Algorithm>& algorithms)
    : merge_(profile.merge), all_reduce_(profile) {
  for (const casync::Algorithm& algorithm : algorithms)
    codecs_.push_back(profile.codec(algorithm.name));
}

Picoseconds TaskCosts::codec_time(const casync::Task& task, std::uint32_t divisor,
                                  std::uint32_t gpus) const {
  if ((task.flags & casync::kBatched) != 0) return Picoseconds{0};  // its leader's time
  const std::int64_t elements = (task.amount + gpus - 1) / gpus;
  double seconds = 0;
  if (task.kind == casync::Kind::kMerge) {
    seconds = merge_(elements);
  } else {
    const costs::CodecCosts& codec = codecs_[static_cast<std::size_t>(task.algorithm)];
    seconds = task.kind == casync::Kind::kEncode
                  ? codec.encode_s(elements, casync::encodes_quotients(task, divisor))
              : (task.flags & casync::kAccumulate) != 0 ? codec.decode_add(elements)
                                                        : codec.decode(elements);
    if (casync::gathers(task)) seconds += (divisor - 1) * codec.decode_add(elements);
  }
  if (!(seconds >= 0 && seconds <= kLongest_s)) {
    throw io::InputError(
        fmt::format("{} of {} elements costs {} s by this profile; it must be 0 s to {:g} s",
                    casync::to_string(task.kind), task.amount, seconds, kLongest_s));
  }
  return casync::from_seconds(seconds);
}

Picoseconds TaskCosts::stage_time(const casync::Task& task,
                                  std::span<const casync::Factor> factors) const {
  const costs::CodecCosts& codec = codecs_[static_cast<std::size_t>(task.algorithm)];
  if (codec.stages.size() != factors.size()) {
    throw io::InputError(
        fmt::format("this profile has costs of {} stages of an algorithm that has {}; measure it "
                    "with hipress-profile `algorithm`",
                    codec.stages.size(), factors.size()));
  }
  const bool encodes = task.kind == casync::Kind::kEncode;
  const casync::Factor& factor = encodes ? factors[task.stage] : factors.back();
  costs::StageWork work{.elements = factor.elements, .element_ranks = factor.element_ranks};
  for (const casync::Factor& one : factors) {
    if (encodes && one.stage != task.stage) continue;
    work.values += one.values;
    work.value_ranks += one.value_ranks;
  }
  const double seconds = (encodes ? codec.stages[task.stage] : codec.decode_stages).seconds(work);
  if (!(seconds >= 0 && seconds <= kLongest_s)) {
    throw io::InputError(
        fmt::format("{} in stages of {} elements costs {} s by this profile; it must be 0 s to "
                    "{:g} s",
                    casync::to_string(task.kind), task.amount, seconds, kLongest_s));
  }
  return casync::from_seconds(seconds);
}

Picoseconds TaskCosts::all_reduce_time(const casync::Task& task, std::uint32_t nodes,
                                       const costs::LinkCosts& link, std::uint32_t gpus) const {
  const double seconds = all_reduce_.seconds(nodes, task.amount, link);
  if (!(seconds >= 0 && seconds <= kLongest_s)) {
    throw io::InputError(
        fmt::format("AllReduce of {} bytes costs {} s by this profile; it must be 0 s to {:g} s",
                    task.amount, seconds, kLongest_s));
  }
  const Picoseconds library = casync::from_seconds(seconds);
  if (!casync::casts(task)) return library;
  return codec_time(casync::cast_of(task, casync::Kind::kEncode), nodes, gpus) + library +
         codec_time(casync::cast_of(task, casync::Kind::kDecode), nodes, gpus);
}

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
  if (!shared_cores) return;
  std::unordered_map<std::uint32_t, std::uint32_t> capacity_of_host;
  for (const std::uint32_t host : cluster.host) {
    const auto [entry, added] = capacity_of_host.try_emplace(host, 0);
    if (added) entry->second = sharing.add_capacity(cluster.cores_per_host);
    host_cores.push_back(entry->second);
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

std::int64_t graph_bytes(const TaskGraph& graph) {
  const auto& [starts, columns] = graph.edges;
  return static_cast<std::int64_t>(graph.tasks() * (sizeof(Task) + sizeof(graph.predecessors[0])) +
                                   starts.capacity() * sizeof(starts[0]) +
                                   columns.capacity() * sizeof(columns[0]));
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

namespace {

template <class Sends>
Result simulate_in_order(const TaskGraph& graph, const TaskCosts& costs,
                         const costs::Cluster& cluster, const Options& options) {
  if (options.network == Network::kPort) {
    return Engine<PortNetwork<Sends>>(graph, costs, cluster, options).run();
  }
  return Engine<FairNetwork<Sends>>(graph, costs, cluster, options).run();
}

}  // namespace

Result simulate(const TaskGraph& graph, const TaskCosts& costs, const costs::Cluster& cluster,
                const Options& options) {
  check_cluster(cluster, graph.nodes);
  require(options.network == Network::kFair || costs::is_uniform(cluster),
          "network port has one port per node, but in this cluster messages pass links that nodes "
          "share (host_link, rack, slow_links): take network fair");
  if (options.transfer_order == TransferOrder::kNeed) {
    return simulate_in_order<SendsByNeed>(graph, costs, cluster, options);
  }
  return simulate_in_order<SendsByReady>(graph, costs, cluster, options);
}

}  // namespace hipress::sim
