#include "costs/cluster.hpp"

#include "costs/link_yaml.hpp"
#include "costs/overlap_yaml.hpp"
#include "io/quantity.hpp"
#include "io/yaml.hpp"

namespace hipress::costs {
namespace {

using io::YamlNode;

constexpr std::int64_t kMostNodes = 1 << 20;

/// Nodes 0 … n−1 on the first machine, n … 2n−1 on the second, and so on.
std::vector<std::uint32_t> fill_hosts(std::uint32_t nodes, std::uint32_t nodes_per_host) {
  std::vector<std::uint32_t> host(nodes);
  for (std::uint32_t node = 0; node < nodes; ++node) host[node] = node / nodes_per_host;
  return host;
}

std::uint32_t read_nodes(const YamlNode& root, std::uint32_t asked) {
  const auto node = root.find("nodes");
  if (!node && asked == 0)
    return static_cast<std::uint32_t>(root.at("nodes").integer(1, kMostNodes));
  if (!node) return asked;
  const auto nodes = static_cast<std::uint32_t>(node->integer(1, kMostNodes));
  if (asked > 0 && nodes != asked) {
    node->fail("the cluster has " + std::to_string(nodes) + " nodes, but " + std::to_string(asked) +
               " are asked for: leave out one of the two numbers");
  }
  return nodes;
}

/// Slower or faster nodes, by index; nodes that are not listed have speed 1.
void read_speeds(const YamlNode& node, std::vector<double>& compute_speed) {
  for (const auto& [key, factor] : node.entries()) {
    std::int64_t index = 0;
    try {
      index =
          io::parse_integer(key, "node", 0, static_cast<std::int64_t>(compute_speed.size()) - 1);
    } catch (const std::exception& error) {
      factor.fail(error.what());
    }
    const double speed = factor.number();
    if (speed <= 0)
      factor.fail("must be positive (1 is nominal, 0.5 half as fast), got '" + factor.text() + "'");
    compute_speed[static_cast<std::size_t>(index)] = speed;
  }
}

}  // namespace

Cluster cluster_from_profile(const Profile& profile, std::uint32_t nodes) {
  Cluster cluster;
  cluster.name = profile.name;
  cluster.nodes = nodes;
  cluster.link = profile.link;
  cluster.overlap = profile.overlap;
  cluster.host = fill_hosts(nodes, profile.shared_host ? nodes : 1);
  cluster.cores_per_host = profile.cores;
  cluster.compute_speed.assign(nodes, 1.0);
  return cluster;
}

Cluster read_cluster(const std::string& path, const Profile& profile, std::uint32_t nodes) {
  const YamlNode root = YamlNode::load(path);
  root.expect_keys(
      {"name", "nodes", "nodes_per_host", "cores_per_host", "link", "overlap", "compute_speed"});
  Cluster cluster = cluster_from_profile(profile, read_nodes(root, nodes));
  if (const auto name = root.find("name")) cluster.name = name->text();
  if (const auto link = root.find("link")) {
    link->expect_keys({"overhead", "bandwidth", "bandwidth_both_ways", "burst", "latency",
                       "core_s_per_byte", "core_time_per_message"});
    cluster.link = read_link(*link, profile.link);
  }
  if (const auto overlap = root.find("overlap")) {
    cluster.overlap = read_overlap(*overlap, profile.overlap);
  }
  if (const auto count = root.find("nodes_per_host")) {
    cluster.host =
        fill_hosts(cluster.nodes, static_cast<std::uint32_t>(count->integer(1, kMostNodes)));
  }
  if (const auto cores = root.find("cores_per_host")) {
    cluster.cores_per_host = static_cast<int>(cores->integer(0, kMostNodes));
  }
  if (const auto speeds = root.find("compute_speed")) read_speeds(*speeds, cluster.compute_speed);
  return cluster;
}

}  // namespace hipress::costs
