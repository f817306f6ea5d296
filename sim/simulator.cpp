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

void check_slow_links(const costs::Cluster& cluster) {
  for (const costs::SlowLink& link : cluster.slow_links) {
    require(link.bandwidth > 0 && std::isfinite(link.bandwidth),
            fmt::format("slow_links: bandwidth must be positive and finite, got {} B/s",
                        link.bandwidth));
    const double latency_s = link.latency_s.value_or(0);
    require(
        latency_s >= 0 && latency_s <= kLongest_s,
        fmt::format("slow_links: latency must be 0 s to {:g} s, got {} s", kLongest_s, latency_s));
  }
  require(cluster.slow_links.empty() || (cluster.racks.empty() && cluster.link.burst_bytes == 0),
          "slow_links: not with racks, nor with bursts (link: {burst: 0B})");
}

void check_site(const costs::Cluster& cluster) {
  if (!cluster.site) return;
  check_link(cluster.site->link, "link of a site's nodes");
  require(cluster.site->nodes > 0, "sites: nodes must be at least 1");
  require(cluster.gpus_per_node >= cluster.site->nodes &&
              cluster.gpus_per_node % cluster.site->nodes == 0,
          fmt::format("a site of {} nodes cannot have {} GPUs: give each node as many",
                      cluster.site->nodes, cluster.gpus_per_node));
  require(!costs::is_hierarchical(cluster), "sites: not with host_link or rack");
}

/// Refuses racks, whose capacities count links of hosts, if nodes share a host but not its link.
void check_hosts(const costs::Cluster& cluster) {
  require(cluster.racks.empty() || cluster.host_link || !costs::share_a_host(cluster),
          "rack: nodes that share a host need a host_link; those on other hosts share the host's "
          "link");
}

void check_gpus(const costs::Cluster& cluster) {
  require(cluster.gpus_per_node > 0, "gpus_per_node must be at least 1");
  if (costs::gpus_per_machine(cluster) == 1) return;
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
  for (const costs::RackCosts& rack : cluster.racks) check_rack(rack);
  require(cluster.racks.size() <= costs::kMostLevels,
          fmt::format("rack: at most {} levels", costs::kMostLevels));
  if (const auto wrong = costs::out_of_range(cluster.overlap)) {
    require(false,
            fmt::format("overlap: factors must be 1 to {:g}, got {}", costs::kMaxOverlap, *wrong));
  }
  require(cluster.core_turn_s >= 0 && cluster.core_turn_s <= costs::kLongestTurn_s,
          fmt::format("core_turn must be 0 s to {:g} s, got {} s", costs::kLongestTurn_s,
                      cluster.core_turn_s));
  require(cluster.nodes == nodes,
          fmt::format("the cluster has {} nodes, the plan {}: give the same number to both",
                      cluster.nodes, nodes));
  require(
      cluster.host.size() == nodes && cluster.compute_speed.size() == nodes,
      fmt::format("the cluster must name host and compute speed of each of its {} nodes", nodes));
  require(
      !costs::is_hierarchical(cluster) || cluster.link.burst_bytes == 0,
      "link: bursts need nodes with a link of their own; with host_link or rack, give burst: 0B");
  check_hosts(cluster);
  check_slow_links(cluster);
  check_site(cluster);
  check_gpus(cluster);
  require(cluster.host_memory_bandwidth >= 0 && std::isfinite(cluster.host_memory_bandwidth),
          fmt::format("host_memory_bandwidth must be 0 or more and finite, got {} B/s",
                      cluster.host_memory_bandwidth));
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const double speed = cluster.compute_speed[node];
    require(
        speed > 0 && std::isfinite(speed),
        fmt::format("compute speed of node {} must be positive and finite, got {}", node, speed));
  }
}

void check_threads(const casync::Computing& computing, const costs::Cluster& cluster) {
  require(cluster.cores_per_host == 0 || computing.threads <= cluster.cores_per_host,
          fmt::format("the model computes with {} threads a rank, but a host has {} cores: capture "
                      "it with as many threads as it will train with there, or correct 'threads' "
                      "in the model, or 'cores' in the profile ('cores_per_host' of a cluster)",
                      computing.threads, cluster.cores_per_host));
}

template <class Sends>
Result simulate_in_order(const TaskGraph& graph, const TaskCosts& costs,
                         const costs::Cluster& cluster, const Options& options) {
  if (options.network == Network::kPort) {
    return EventEngine<PortNetwork<Sends>>(graph, costs, cluster, options).run();
  }
  return EventEngine<FairNetwork<Sends>>(graph, costs, cluster, options).run();
}

}  // namespace

Result simulate(const TaskGraph& graph, const TaskCosts& costs, const costs::Cluster& cluster,
                const Options& options) {
  check_cluster(cluster, graph.nodes);
  check_threads(graph.computing, cluster);
  require(options.network == Network::kFair || costs::is_uniform(cluster) || !graph.groups.empty(),
          "network port has one port per node, but in this cluster messages pass links that nodes "
          "share (host_link, rack, slow_links, pairs of sites): take network fair");
  if (!graph.groups.empty()) {  // such a graph has no messages
    return EventEngine<FairNetwork<SendsByReady>, true>(graph, costs, cluster, options).run();
  }
  if (options.transfer_order == TransferOrder::kNeed) {
    return simulate_in_order<SendsByNeed>(graph, costs, cluster, options);
  }
  return simulate_in_order<SendsByReady>(graph, costs, cluster, options);
}

}  // namespace hipress::sim
