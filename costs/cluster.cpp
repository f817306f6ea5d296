#include "costs/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "costs/host_pairs.hpp"

namespace hipress::costs {
namespace {

/// Seconds per byte of a ring reduce-scatter or all-gather among `ends` members.
double ring_s_per_byte(double ends, double bandwidth) { return (ends - 1) / ends / bandwidth; }

}  // namespace

double local_s_per_byte(const Cluster& cluster) {
  const double gpus = gpus_per_machine(cluster), machines = machines_per_node(cluster);
  double seconds = 0;
  if (gpus > 1) seconds += ring_s_per_byte(gpus, cluster.gpu_link.bandwidth);
  if (machines > 1) seconds += ring_s_per_byte(machines, cluster.site->link.bandwidth_both_ways);
  return seconds;
}

double local_s(const Cluster& cluster, std::int64_t bytes) {
  if (cluster.gpus_per_node == 1) return 0;
  double seconds = 0;
  if (const std::uint32_t gpus = gpus_per_machine(cluster); gpus > 1) {
    const double steps = gpus - 1.0;
    seconds = steps * cluster.gpu_link.overhead_s +
              steps / gpus * static_cast<double>(bytes) / cluster.gpu_link.bandwidth;
  }
  if (const std::uint32_t machines = machines_per_node(cluster); machines > 1) {
    const LinkCosts& link = cluster.site->link;
    const double steps = machines - 1.0;
    // Every machine sends and receives at the same time, so bandwidth_both_ways counts.
    seconds += steps * (link.overhead_s + link.latency_s) +
               steps / machines * static_cast<double>(bytes) / link.bandwidth_both_ways;
  }
  return seconds;
}

bool share_a_host(const Cluster& cluster) {
  std::vector<std::uint32_t> hosts = cluster.host;
  std::sort(hosts.begin(), hosts.end());
  return std::adjacent_find(hosts.begin(), hosts.end()) != hosts.end();
}

LinkCosts slow_link_costs(const Cluster& cluster, std::uint32_t place) {
  LinkCosts link = cluster.link;
  const SlowLink& slow = cluster.slow_links[place];
  // An option or an axis of a sweep may have made the hosts' link slower than the slow link that
  // the file gives: then the hosts' link limits.
  link.bandwidth = std::min(link.bandwidth, slow.bandwidth);
  link.bandwidth_both_ways = std::min(link.bandwidth_both_ways, link.bandwidth);
  if (slow.latency_s) {
    link.latency_s = cluster.site ? *slow.latency_s : std::max(link.latency_s, *slow.latency_s);
  }
  return link;
}

bool is_uniform(const Cluster& cluster) {
  if (!cluster.slow_links.empty()) return false;
  if (!is_hierarchical(cluster) || cluster.nodes < 2) return true;
  const Path first = path(cluster, 0, 1);
  if (first >= Path::kBetweenRacks) return false;
  // The path is the same if all nodes are on one host, or all on different hosts of one rack.
  for (std::uint32_t node = 1; node < cluster.nodes; ++node) {
    if (path(cluster, 0, node) != first) return false;
  }
  return first == Path::kWithinHost || !share_a_host(cluster);
}

double rack_bandwidth(const Cluster& cluster, std::size_t level) {
  double bandwidth = cluster.racks[level].hosts * cluster.link.bandwidth;
  for (std::size_t i = 0; i <= level; ++i) bandwidth /= cluster.racks[i].oversubscription;
  return bandwidth;
}

std::vector<std::uint32_t> racks_below(const Cluster& cluster) {
  std::vector<std::uint32_t> below = {0};
  for (const RackCosts& level : cluster.racks) {
    below.push_back(below.back() + std::ranges::max(cluster.host) / level.hosts + 1);
  }
  return below;
}

LinkCosts card_link(const Cluster& cluster) {
  LinkCosts link = cluster.link;
  if (!cluster.host_link) return link;
  link.bandwidth /= cluster.cards.count;
  link.bandwidth_both_ways /= cluster.cards.count;
  return link;
}

std::uint32_t rails(const Cluster& cluster) {
  return cluster.host_link && cluster.cards.nodes > 0 ? nodes_per_host(cluster) : 1;
}

namespace {

/// `link`, limited to the bandwidth of the racks along a path, with their latencies added.
LinkCosts along(const Cluster& cluster, Path path, LinkCosts link) {
  for (std::size_t level = 0; level < levels_of(path); ++level) {
    link.bandwidth = std::min(link.bandwidth, rack_bandwidth(cluster, level));
    link.latency_s += cluster.racks[level].latency_s;
  }
  return link;
}

}  // namespace

LinkCosts path_costs(const Cluster& cluster, Path path) {
  if (path == Path::kWithinHost) return *cluster.host_link;
  return along(cluster, path, card_link(cluster));
}

LinkCosts ring_costs(const Cluster& cluster) {
  Path farthest = Path::kWithinHost;
  bool within_host = false;
  for (std::uint32_t node = 0; node < cluster.nodes; ++node) {
    const Path step = path(cluster, node, (node + 1) % cluster.nodes);
    farthest = std::max(farthest, step);
    within_host = within_host || step == Path::kWithinHost;
  }
  const bool within = farthest == Path::kWithinHost;
  LinkCosts link = within ? *cluster.host_link : along(cluster, farthest, cluster.link);
  const double of_host = within ? cluster.link.bandwidth : link.bandwidth;
  if (within_host) link.bandwidth = std::min(link.bandwidth, cluster.host_link->bandwidth);
  if (cluster.of_machine) {
    link.span = {cluster.nodes / nodes_per_host(cluster), cluster.gpus_per_node, of_host};
  }
  if (cluster.slow_links.empty()) return link;
  double latency_s = 0;
  const HostPairs slow_links(cluster.slow_links);
  for (std::uint32_t node = 0; node < cluster.nodes; ++node) {
    const auto slow = slow_links.find(cluster.host[node], cluster.host[(node + 1) % cluster.nodes]);
    const LinkCosts step = slow ? slow_link_costs(cluster, *slow) : cluster.link;
    link.bandwidth = std::min(link.bandwidth, step.bandwidth);
    link.bandwidth_both_ways = std::min(link.bandwidth_both_ways, step.bandwidth_both_ways);
    latency_s = std::max(latency_s, step.latency_s);
  }
  link.latency_s = latency_s;
  return link;
}

std::uint32_t nodes_per_host(const Cluster& cluster) {
  return static_cast<std::uint32_t>(std::ranges::count(cluster.host, cluster.host.front()));
}

double ranks_per_core(const Cluster& cluster) {
  if (cluster.cores_per_host == 0 || cluster.host.empty()) return 1;
  return std::max(1.0, 1.0 * nodes_per_host(cluster) / cluster.cores_per_host);
}

bool fills_hosts(const Cluster& cluster) {
  const std::uint32_t each = nodes_per_host(cluster);
  if (cluster.nodes % each != 0) return false;
  for (std::uint32_t node = 0; node < cluster.nodes; ++node) {
    if (cluster.host[node] != node / each) return false;
  }
  return true;
}

namespace {

/// True if places of `place` nodes (hosts or racks) divide all groups in the same way: each place
/// has whole groups, or equal parts of groups.
bool divide_alike(std::uint32_t nodes, std::uint32_t stride, std::uint32_t place) {
  const std::uint32_t reach = nodes * stride;
  if (place % reach == 0) return true;
  return reach % place == 0 && (place % stride == 0 || stride % place == 0);
}

/// Bytes that the nodes of a place together send to other places, divided by the bytes that one
/// node sends. A ring leaves the place once, and there are min(stride, place) rings. In an exchange
/// of n nodes, m of them in the place, each node sends (n−m)/(n−1) of its bytes out of it.
double flows_out_of(std::uint32_t place, std::uint32_t nodes, std::uint32_t stride,
                    Pattern pattern) {
  if (pattern == Pattern::kRing) return std::min(stride, place);
  const double there = std::max(1u, place / stride);
  return place * (nodes - there) / (nodes - 1);
}

}  // namespace

std::string unlike_groups(const Cluster& cluster, std::uint32_t nodes, std::uint32_t stride) {
  if (!is_hierarchical(cluster)) return {};
  if (!fills_hosts(cluster)) {
    return "hosts have different numbers of nodes; give a number of nodes that nodes_per_host "
           "divides";
  }
  constexpr std::string_view kRemedy =
      "give numbers (shard, reshard, exchange_within) that divide that one, or multiples of it";
  const std::uint32_t each = nodes_per_host(cluster);
  if (!divide_alike(nodes, stride, each)) {
    return fmt::format("groups of {} nodes, {} apart, are on hosts of {} in different ways; {}",
                       nodes, stride, each, kRemedy);
  }
  for (const RackCosts& rack : cluster.racks) {
    if (divide_alike(nodes, stride, each * rack.hosts)) continue;
    return fmt::format("groups of {} nodes, {} apart, are in racks of {} in different ways; {}",
                       nodes, stride, each * rack.hosts, kRemedy);
  }
  return {};
}

GroupNetwork group_network(const Cluster& cluster, std::uint32_t nodes, std::uint32_t stride,
                           Pattern pattern) {
  const std::uint32_t reach = nodes * stride;
  const std::uint32_t each = nodes_per_host(cluster);
  if (nodes == 1) return {.link = cluster.link};
  if (cluster.host_link && reach <= each) {
    GroupNetwork inside{*cluster.host_link, true};
    if (cluster.of_machine) inside.link.span = {.hosts = 1};
    return inside;
  }
  GroupNetwork network{.link = cluster.link};
  if (cluster.of_machine) {
    const std::uint32_t on_host = std::max(1U, each / stride);  // members of the group
    network.link.span = {nodes / std::min(nodes, on_host), 1, cluster.link.bandwidth};
  }
  if (cluster.host_link) network.flows = flows_out_of(each, nodes, stride, pattern);
  const auto narrow = [&](double bandwidth, double latency_s) {
    network.link.bandwidth = std::min(network.link.bandwidth, bandwidth);
    network.link.bandwidth_both_ways = std::min(network.link.bandwidth_both_ways, bandwidth);
    network.link.latency_s = std::max(network.link.latency_s, latency_s);
  };
  const double own = std::max(1.0, network.flows);
  network.link.bandwidth /= own;
  network.link.bandwidth_both_ways /= own;
  double latency_s = cluster.link.latency_s;
  for (std::size_t level = 0; level < cluster.racks.size(); ++level) {
    const std::uint32_t in_rack = each * cluster.racks[level].hosts;
    if (reach <= in_rack) break;
    latency_s += cluster.racks[level].latency_s;
    const double of_node =
        rack_bandwidth(cluster, level) / flows_out_of(in_rack, nodes, stride, pattern);
    narrow(of_node, latency_s);
    double& of_host = network.link.span.host_bandwidth;
    of_host = std::min(of_host, of_node * own);
  }
  for (std::uint32_t place = 0; place < cluster.slow_links.size(); ++place) {
    const LinkCosts slow = slow_link_costs(cluster, place);
    narrow(slow.bandwidth / own, slow.latency_s);
  }
  return network;
}

}  // namespace hipress::costs
