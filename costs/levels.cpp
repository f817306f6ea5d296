#include "costs/levels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "io/error.hpp"

namespace hipress::costs {
std::optional<Cluster> in_one_level(const Cluster& cluster) {
  const std::uint32_t gpus = cluster.gpus_per_node;
  if (gpus < 2 || cluster.site || cluster.host_link || cluster.link.burst_bytes > 0 ||
      share_a_host(cluster)) {
    return std::nullopt;
  }
  if (std::int64_t{cluster.nodes} * gpus > kMaxNodes) return std::nullopt;
  Cluster flat = cluster;
  flat.nodes = cluster.nodes * gpus;
  flat.gpus_per_node = 1;
  flat.gpu_link = {};
  flat.host_link = LinkCosts{.overhead_s = cluster.gpu_link.overhead_s,
                             .bandwidth = cluster.gpu_link.bandwidth,
                             .bandwidth_both_ways = cluster.gpu_link.bandwidth};
  flat.host.clear();
  flat.compute_speed.clear();
  for (std::uint32_t node = 0; node < cluster.nodes; ++node) {
    flat.host.insert(flat.host.end(), gpus, cluster.host[node]);
    flat.compute_speed.insert(flat.compute_speed.end(), gpus, cluster.compute_speed[node]);
  }
  return flat;
}

std::optional<Cluster> in_two_levels(const Cluster& cluster) {
  if (cluster.gpus_per_node > 1 || !cluster.host_link || cluster.nodes == 0) return std::nullopt;
  const std::uint32_t gpus = nodes_per_host(cluster);
  if (gpus < 2 || !fills_hosts(cluster)) return std::nullopt;
  Cluster two = cluster;
  two.nodes = cluster.nodes / gpus;
  two.gpus_per_node = gpus;
  two.gpu_link = {
      .overhead_s = cluster.host_link->overhead_s + cluster.host_link->latency_s,
      .bandwidth = std::min(cluster.host_link->bandwidth, cluster.host_link->bandwidth_both_ways)};
  two.host_link.reset();
  two.host.clear();
  two.compute_speed.clear();
  for (std::uint32_t node = 0; node < two.nodes; ++node) {
    const auto first = cluster.compute_speed.begin() + static_cast<std::ptrdiff_t>(node) * gpus;
    if (std::any_of(first, first + gpus, [&](double speed) { return speed != *first; })) {
      return std::nullopt;
    }
    two.host.push_back(node);
    two.compute_speed.push_back(*first);
  }
  return two;
}

std::optional<Cluster> in_other_levels(const Cluster& cluster) {
  return cluster.gpus_per_node > 1 ? in_one_level(cluster) : in_two_levels(cluster);
}

Cluster of_gpus(const Cluster& cluster) {
  if (cluster.gpus_per_node == 1) return cluster;
  std::optional<Cluster> flat = in_one_level(cluster);
  if (flat) return *std::move(flat);
  throw io::InputError(
      "every GPU has shards of its own, and this cluster cannot be said GPU by GPU: give nodes on "
      "hosts of their own, without sites and bursts (link: {burst: 0B})");
}

std::string describe_levels(const Cluster& cluster) {
  if (cluster.site) {
    return fmt::format("the plan is between {} sites", cluster.nodes);
  }
  if (cluster.gpus_per_node > 1) {
    return fmt::format(
        "the plan is in two levels: {} nodes, each of which sums gradients over its {} GPUs first",
        cluster.nodes, cluster.gpus_per_node);
  }
  return fmt::format("the plan is in one level: each of the {} GPUs is a node", cluster.nodes);
}

Cluster with_nodes(const Cluster& cluster, std::uint32_t nodes) {
  if (cluster.nodes == nodes) return cluster;
  const std::optional<Cluster> other = in_other_levels(cluster);
  return other && other->nodes == nodes ? *other : cluster;
}

}  // namespace hipress::costs
