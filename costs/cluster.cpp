#include "costs/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "costs/host_pairs.hpp"
#include "costs/link_yaml.hpp"
#include "costs/overlap_yaml.hpp"
#include "io/quantity.hpp"
#include "io/yaml.hpp"

namespace hipress::costs {
namespace {

using io::YamlNode;

/// Nodes 0 … n−1 on the first machine, n … 2n−1 on the second, and so on.
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
    compute_speed[static_cast<std::size_t>(index)] =
        factor.number(kMinFactor, kMaxFactor, "1 is nominal, 0.5 half as fast");
  }
}

/// Of the link between nodes on a host the profile says nothing.
LinkCosts read_host_link(const YamlNode& node, const Profile& profile) {
  node.expect_keys({"overhead", "rate", "bandwidth", "bandwidth_both_ways", "latency",
                    "core_s_per_byte", "core_factor_interrupting", "core_time_per_message"});
  return read_link(node, {}, required_bandwidth(node, profile));
}

RackCosts read_rack(const YamlNode& node) {
  node.expect_keys({"hosts", "oversubscription", "latency"});
  RackCosts rack;
  rack.hosts = static_cast<std::uint32_t>(node.at("hosts").integer(1, kMaxNodes));
  if (const auto factor = node.find("oversubscription")) {
    rack.oversubscription =
        factor->number(kMinFactor, kMaxFactor, "1 is none, 4 a quarter of what hosts could send");
  }
  if (const auto latency = node.find("latency")) rack.latency_s = latency->duration();
  return rack;
}

/// A link between two of so many hosts.
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
          .fail(fmt::format(
              "is more than the {}' own link carries ({}): give that link what the fastest "
              "needs, and here what is slower",
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

/// Links of the map under `key`.
void read_slow_links(const YamlNode& map, std::string_view key, const Profile& profile,
                     Cluster& cluster) {
  const auto links = map.find(key);
  if (!links) return;
  if (cluster.rack) links->fail("not in a cluster with racks: leave one of the two out");
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

/// How many sites there are; `asked` counts them too.
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

/// Makes a site of each node: what the file says of nodes is of the machines of a site.
void read_sites(const YamlNode& root, const YamlNode& sites, const Profile& profile,
                Cluster& cluster) {
  sites.expect_keys({"nodes", "link", "pairs"});
  for (const std::string_view key : {"host_link", "rack", "slow_links", "nodes_per_host"}) {
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

/// The speeds of a file's nodes, a site's that of its slowest, for which the others wait.
std::vector<double> speeds_of_sites(const Cluster& cluster, const std::vector<double>& of_nodes) {
  std::vector<double> speeds;
  const auto each = static_cast<std::ptrdiff_t>(cluster.site->nodes);
  for (auto first = of_nodes.begin(); first != of_nodes.end(); first += each) {
    speeds.push_back(*std::min_element(first, first + each));
  }
  return speeds;
}

/// Bursts are of nodes with a link of their own.
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
    count->fail("say what joins a node's GPUs: gpu_link: {bandwidth: 300GB/s, overhead: 5us}");
  }
}

/// A step of a ring takes o and its part's B from each of `ends`.
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
    // Every machine sends and receives at once.
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
  // Options and axes may give hosts another link than the file did.
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
  if (first == Path::kBetweenRacks) return false;
  // All on one host, or all on different ones in one rack.
  for (std::uint32_t node = 1; node < cluster.nodes; ++node) {
    if (path(cluster, 0, node) != first) return false;
  }
  return first == Path::kWithinHost || !share_a_host(cluster);
}

LinkCosts path_costs(const Cluster& cluster, Path path) {
  if (path == Path::kWithinHost) return *cluster.host_link;
  LinkCosts link = cluster.link;
  if (path == Path::kBetweenRacks) {
    link.bandwidth = std::min(link.bandwidth, rack_bandwidth(cluster));
    link.latency_s += cluster.rack->latency_s;
  }
  return link;
}

LinkCosts ring_costs(const Cluster& cluster) {
  Path farthest = Path::kWithinHost;
  bool within_host = false;
  for (std::uint32_t node = 0; node < cluster.nodes; ++node) {
    const Path step = path(cluster, node, (node + 1) % cluster.nodes);
    farthest = std::max(farthest, step);
    within_host = within_host || step == Path::kWithinHost;
  }
  LinkCosts link = path_costs(cluster, farthest);
  if (within_host) link.bandwidth = std::min(link.bandwidth, cluster.host_link->bandwidth);
  if (cluster.of_machine) {
    link.span = {cluster.nodes / nodes_per_host(cluster), cluster.gpus_per_node,
                 cluster.link.bandwidth};
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

/// Groups are in places of so many nodes, several in each or each in several, in one way.
bool divide_alike(std::uint32_t nodes, std::uint32_t stride, std::uint32_t place) {
  const std::uint32_t reach = nodes * stride;
  if (place % reach == 0) return true;
  return reach % place == 0 && (place % stride == 0 || stride % place == 0);
}

/// How many times what a node sends leaves a place of so many nodes, for all of these: a ring
/// leaves it once, and rings of a stride are as many. Of an exchange among n nodes, m of them
/// there, each sends (n−m)/(n−1) of it.
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
  if (cluster.rack && !divide_alike(nodes, stride, each * cluster.rack->hosts)) {
    return fmt::format("groups of {} nodes, {} apart, are in racks of {} in different ways; {}",
                       nodes, stride, each * cluster.rack->hosts, kRemedy);
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
    const std::uint32_t on_host = std::max(1U, each / stride);  // ranks of the group
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
  const std::uint32_t in_rack = cluster.rack ? each * cluster.rack->hosts : cluster.nodes;
  if (cluster.rack && reach > in_rack) {
    narrow(rack_bandwidth(cluster) / flows_out_of(in_rack, nodes, stride, pattern),
           cluster.link.latency_s + cluster.rack->latency_s);
  }
  for (std::uint32_t place = 0; place < cluster.slow_links.size(); ++place) {
    const LinkCosts slow = slow_link_costs(cluster, place);
    narrow(slow.bandwidth / own, slow.latency_s);
  }
  return network;
}

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
  const YamlNode root = YamlNode::load(path);
  const auto nodes = root.find("nodes");
  if (!nodes) return std::nullopt;
  if (const auto sites = root.find("sites")) return read_site_count(root, *sites, 0);
  return static_cast<std::uint32_t>(nodes->integer(1, kMaxNodes));
}

namespace {

/// What connects nodes and the hosts that they share.
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
    cluster.rack = read_rack(*rack);
    if (!cluster.host_link && share_a_host(cluster)) {
      rack->fail(
          "nodes share hosts, so say what connects those on one host: "
          "host_link: {bandwidth: 300GB/s}; those on other hosts share the host's link");
    }
  }
}

}  // namespace

Cluster read_cluster(const std::string& path, const Profile& profile, std::uint32_t nodes,
                     NodeCount rule) {
  const YamlNode root = YamlNode::load(path);
  root.expect_keys({"name", "nodes", "nodes_per_host", "cores_per_host", "core_turn",
                    "host_memory_bandwidth", "link", "host_link", "rack", "slow_links", "sites",
                    "gpus_per_node", "gpu_link", "overlap", "compute_speed"});
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
