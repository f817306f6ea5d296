#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "costs/cluster.hpp"
#include "costs/fabric.hpp"
#include "costs/link_yaml.hpp"
#include "costs/overlap_yaml.hpp"
#include "io/quantity.hpp"
#include "io/yaml.hpp"

/// Reads clusters from files and profiles; declared in cluster.hpp.
namespace hipress::costs {
namespace {

using io::YamlNode;

/// Host of each node: 0 for nodes 0 … n−1, 1 for nodes n … 2n−1, and so on.
std::vector<std::uint32_t> fill_hosts(std::uint32_t nodes, std::uint32_t nodes_per_host) {
  std::vector<std::uint32_t> host(nodes);
  for (std::uint32_t node = 0; node < nodes; ++node) host[node] = node / nodes_per_host;
  return host;
}

std::uint32_t read_nodes(const YamlNode& root, std::uint32_t asked, NodeCount rule) {
  const auto node = root.find("nodes");
  if (!node && asked == 0)
    return static_cast<std::uint32_t>(root.at("nodes").integer(1, kMaxNodes));
  if (!node || (asked > 0 && rule == NodeCount::kAsAsked)) return asked;
  const auto nodes = static_cast<std::uint32_t>(node->integer(1, kMaxNodes));
  if (asked > 0 && nodes != asked) {
    node->fail("the cluster has " + std::to_string(nodes) + " nodes, but " + std::to_string(asked) +
               " are asked for: leave out one of the two numbers");
  }
  return nodes;
}

/// Reads `host_link`. The profile has no such link, so it gives no defaults.
LinkCosts read_host_link(const YamlNode& node, const Profile& profile) {
  node.expect_keys({"overhead", "rate", "bandwidth", "bandwidth_both_ways", "latency",
                    "core_s_per_byte", "core_factor_interrupting", "core_time_per_message"});
  return read_link(node, {}, required_bandwidth(node, profile));
}

/// Reads one slow link; its ends must be in 0 … hosts − 1.
SlowLink read_slow_link(const YamlNode& node, const Profile& profile, const Cluster& cluster,
                        std::int64_t hosts) {
  node.expect_keys({"between", "rate", "bandwidth", "latency"});
  const std::string ones = cluster.site ? "sites" : "hosts";
  const YamlNode ends = node.at("between");
  if (!ends.is_list() || ends.items().size() != 2) {
    ends.fail(fmt::format("name two {}, counted from 0{}: [0, 3]", ones,
                          cluster.site ? "" : " (nodes, where each has a host of its own)"));
  }
  const auto host = [&](std::size_t i) {
    return static_cast<std::uint32_t>(ends.items()[i].integer(0, hosts - 1));
  };
  SlowLink link = {.a = std::min(host(0), host(1)),
                   .b = std::max(host(0), host(1)),
                   .bandwidth = cluster.link.bandwidth};
  if (link.a == link.b) ends.fail(fmt::format("a link joins two {}, not one with itself", ones));
  if (const auto bandwidth = bandwidth_in(node, profile)) {
    link.bandwidth = *bandwidth;
    if (link.bandwidth > cluster.link.bandwidth) {
      node.at(node.has("rate") ? "rate" : "bandwidth")
          .fail(fmt::format("is more than the {}' own link carries ({}): give that link the "
                            "largest bandwidth, and here smaller ones",
                            ones, io::format_bandwidth(cluster.link.bandwidth)));
    }
  }
  if (const auto latency = node.find("latency")) {
    link.latency_s = latency->duration();
    if (!cluster.site && link.latency_s < cluster.link.latency_s) {
      latency->fail("is less than the hosts' own link has: a slow link is slower");
    }
  }
  return link;
}

/// Appends the links in the list `key` of `map` to Cluster::slow_links.
void read_slow_links(const YamlNode& map, std::string_view key, const Profile& profile,
                     Cluster& cluster) {
  const auto links = map.find(key);
  if (!links) return;
  if (!cluster.racks.empty()) {
    links->fail("not in a cluster with racks: leave one of the two out");
  }
  const std::int64_t hosts = *std::ranges::max_element(cluster.host) + std::int64_t{1};
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  for (const YamlNode& node : links->items()) {
    const SlowLink link = read_slow_link(node, profile, cluster, hosts);
    if (!seen.emplace(link.a, link.b).second) {
      node.fail("the link between these two is there already");
    }
    cluster.slow_links.push_back(link);
  }
}

/// Number of sites. `asked` counts sites (0: not given); the file's `nodes` counts machines.
std::uint32_t read_site_count(const YamlNode& root, const YamlNode& sites, std::uint32_t asked) {
  const std::int64_t each = sites.at("nodes").integer(1, kMaxNodes);
  const auto nodes = root.find("nodes");
  if (!nodes && asked > 0) return asked;
  const std::int64_t all = root.at("nodes").integer(1, kMaxNodes);
  if (all % each != 0) {
    nodes->fail(fmt::format("{} nodes are no whole number of sites of {}: give a multiple of that",
                            all, each));
  }
  const auto count = static_cast<std::uint32_t>(all / each);
  if (asked > 0 && asked != count) {
    nodes->fail(
        fmt::format("the cluster has {} sites of {} nodes, but {} sites are asked for: the "
                    "number of nodes that a tool is given counts sites here; leave it out",
                    count, each, asked));
  }
  return count;
}

/// Turns each node into a site. The file's link then becomes that of the machines of a site.
void read_sites(const YamlNode& root, const YamlNode& sites, const Profile& profile,
                Cluster& cluster) {
  sites.expect_keys({"nodes", "link", "pairs"});
  for (const std::string_view key :
       {"host_link", "rack", "cards", "slow_links", "nodes_per_host"}) {
    if (root.has(key)) root.at(key).fail("not in a cluster of sites: leave one of the two out");
  }
  if (cluster.link.burst_bytes > 0) {
    sites.fail(
        "the network of a site has no bursts, and this cluster's or profile's link has: give "
        "the cluster link: {burst: 0B}");
  }
  const YamlNode link = sites.at("link");
  link.expect_keys({"overhead", "rate", "bandwidth", "bandwidth_both_ways", "latency"});
  cluster.site = {.nodes = static_cast<std::uint32_t>(sites.at("nodes").integer(1, kMaxNodes)),
                  .link = cluster.link};
  cluster.link = read_link(link, {}, required_bandwidth(link, profile));
  cluster.host = fill_hosts(cluster.nodes, 1);
  read_slow_links(sites, "pairs", profile, cluster);
}

/// Speed of each site: that of its slowest machine, for which all wait.
std::vector<double> speeds_of_sites(const Cluster& cluster, const std::vector<double>& of_nodes) {
  std::vector<double> speeds;
  const auto each = static_cast<std::ptrdiff_t>(cluster.site->nodes);
  for (auto first = of_nodes.begin(); first != of_nodes.end(); first += each) {
    speeds.push_back(*std::min_element(first, first + each));
  }
  return speeds;
}

/// Throws InputError if a link with bursts is shared; only a node's own link can have bursts.
void refuse_bursts_of_shared_links(const YamlNode& root, const Cluster& cluster) {
  if (cluster.link.burst_bytes == 0) return;
  for (const std::string_view key : {"host_link", "rack", "slow_links"}) {
    if (!root.has(key)) continue;
    root.at(key).fail(
        "a link that nodes share has no bursts, and this cluster's or profile's has: give the "
        "cluster link: {burst: 0B}");
  }
}

void read_gpus(const YamlNode& root, const Profile& profile, Cluster& cluster) {
  if (const auto link = root.find("gpu_link")) {
    link->expect_keys({"rate", "bandwidth", "overhead"});
    cluster.gpu_link.bandwidth = required_bandwidth(*link, profile);
    if (const auto overhead = link->find("overhead")) {
      cluster.gpu_link.overhead_s = overhead->duration();
    }
  }
  const auto count = root.find("gpus_per_node");
  if (!count) return;
  cluster.gpus_per_node = static_cast<std::uint32_t>(count->integer(1, kMaxGpus));
  if (cluster.gpus_per_node > 1 && !root.has("gpu_link")) {
    count->fail("no link joins a node's GPUs: add gpu_link: {bandwidth: 300GB/s, overhead: 5us}");
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
  cluster.core_turn_s = profile.core_turn_s;
  if (profile.device == "cpu") cluster.host_memory_bandwidth = profile.memory_bandwidth;
  cluster.compute_speed.assign(nodes, 1.0);
  return cluster;
}

std::optional<std::uint32_t> nodes_of_cluster(const std::string& path) {
  if (const auto hosts = machine_hosts(path)) return nodes_of(*hosts);
  const YamlNode root = YamlNode::load(path);
  const auto nodes = root.find("nodes");
  if (!nodes) return std::nullopt;
  if (const auto sites = root.find("sites")) return read_site_count(root, *sites, 0);
  return static_cast<std::uint32_t>(nodes->integer(1, kMaxNodes));
}

namespace {

/// Reads the placement of nodes on hosts, the hosts' cores and memory, `host_link` and `rack`.
void read_hosts(const YamlNode& root, const Profile& profile, Cluster& cluster) {
  if (const auto count = root.find("nodes_per_host")) {
    cluster.host =
        fill_hosts(cluster.nodes, static_cast<std::uint32_t>(count->integer(1, kMaxNodes)));
  }
  if (const auto cores = root.find("cores_per_host")) {
    cluster.cores_per_host = static_cast<int>(cores->integer(0, kMaxNodes));
  }
  if (const auto turn = root.find("core_turn"))
    cluster.core_turn_s = turn->duration(kLongestTurn_s);
  if (const auto memory = root.find("host_memory_bandwidth")) {
    cluster.host_memory_bandwidth = memory->bandwidth();
  }
  if (const auto link = root.find("host_link")) {
    cluster.host_link = read_host_link(*link, profile);
  }
  if (const auto rack = root.find("rack")) {
    cluster.racks = read_racks(*rack);
    if (!cluster.host_link && share_a_host(cluster)) {
      rack->fail(
          "nodes share hosts, and no link joins those on one host: add host_link: {bandwidth: "
          "300GB/s}; those on other hosts share the host's link");
    }
  }
}

}  // namespace

Cluster read_cluster(const std::string& path, const Profile& profile, std::uint32_t nodes,
                     NodeCount rule) {
  const YamlNode root = YamlNode::load(path);
  if (const auto machine = root.find("machine")) {
    machine->fail("such clusters are for hipress-plan, hipress-sim and hipress-exec: leave it out");
  }
  root.expect_schema(kClusterSchema);
  root.expect_keys({"schema", "name", "nodes", "nodes_per_host", "cores_per_host", "core_turn",
                    "host_memory_bandwidth", "link", "host_link", "rack", "cards", "slow_links",
                    "sites", "gpus_per_node", "gpu_link", "overlap", "compute_speed"});
  const auto sites = root.find("sites");
  Cluster cluster = cluster_from_profile(
      profile, sites ? read_site_count(root, *sites, nodes) : read_nodes(root, nodes, rule));
  if (const auto name = root.find("name")) cluster.name = name->text();
  if (const auto link = root.find("link")) {
    link->expect_keys({"overhead", "rate", "bandwidth", "bandwidth_both_ways", "burst", "latency",
                       "core_s_per_byte", "core_factor_interrupting", "core_time_per_message"});
    cluster.link = read_link(*link, profile.link, bandwidth_in(*link, profile));
  }
  if (const auto overlap = root.find("overlap")) {
    cluster.overlap = read_overlap(*overlap, profile.overlap);
  }
  read_hosts(root, profile, cluster);
  read_slow_links(root, "slow_links", profile, cluster);
  refuse_bursts_of_shared_links(root, cluster);
  read_gpus(root, profile, cluster);
  if (const auto cards = root.find("cards")) cluster.cards = read_cards(*cards, cluster);
  if (sites) read_sites(root, *sites, profile, cluster);
  const std::uint32_t machines = machines_per_node(cluster);
  const std::int64_t gpus = std::int64_t{cluster.gpus_per_node} * machines;
  if (sites && (gpus > kMaxNodes || std::int64_t{cluster.nodes} * machines > kMaxNodes)) {
    sites->fail(
        fmt::format("{} sites of {} nodes with {} GPUs each are more than this simulates: "
                    "{} nodes in all, and as many GPUs a site",
                    cluster.nodes, machines, cluster.gpus_per_node, kMaxNodes));
  }
  cluster.gpus_per_node = static_cast<std::uint32_t>(gpus);
  if (const auto speeds = root.find("compute_speed")) {
    std::vector<double> of_nodes(std::size_t{cluster.nodes} * machines, 1.0);
    read_speeds(*speeds, of_nodes);
    cluster.compute_speed = sites ? speeds_of_sites(cluster, of_nodes) : std::move(of_nodes);
  }
  return cluster;
}

}  // namespace hipress::costs
