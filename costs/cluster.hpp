#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costs/profile.hpp"

namespace hipress::costs {

/// Least and most that a compute speed or an oversubscription may be in a file: beyond, it is a
/// mistake, and what it slows down takes longer than times can hold.
inline constexpr double kMinFactor = 1e-3;
inline constexpr double kMaxFactor = 1e3;

/// Most nodes that a cluster may have.
inline constexpr std::int64_t kMaxNodes = 1 << 20;

/// Most GPUs that a machine may have.
inline constexpr std::int64_t kMaxGpus = 1 << 12;

/// Longest turn on a core, in seconds: sums of waits for as many threads as there can be then fit
/// in 64 bits of picoseconds.
inline constexpr double kLongestTurn_s = 1;

/// Racks of hosts: hosts 0 … n−1 in the first, and so on.
struct RackCosts {
  std::uint32_t hosts = 1;      ///< n, of a full rack
  double oversubscription = 1;  ///< what leaves a rack, and what enters it, has n·B / this
  double latency_s = 0;         ///< between racks, besides the link's
  bool operator==(const RackCosts&) const = default;
};

/// What joins the GPUs of one node.
struct GpuLinkCosts {
  double overhead_s = 0;  ///< per step of a ring through them
  double bandwidth = 0;   ///< bytes per second of each GPU, both ways at once
  bool operator==(const GpuLinkCosts&) const = default;
};

/// A link between two hosts that is slower than theirs, or between two sites: what all messages
/// between the two share, each way.
struct SlowLink {
  std::uint32_t a = 0, b = 0;  ///< hosts or sites; a < b
  double bandwidth = 0;        ///< bytes per second, at most the link's
  /// On the wire; between hosts at least the link's. None: the link's.
  std::optional<double> latency_s = {};
  bool operator==(const SlowLink&) const = default;
};

/// What a site consists of: machines and the network that joins them.
struct SiteCosts {
  std::uint32_t nodes = 1;  ///< machines of each site
  LinkCosts link;           ///< of each machine
  bool operator==(const SiteCosts&) const = default;
};

/// The machines that nodes run on and the links between them.
struct Cluster {
  std::string name;
  std::uint32_t nodes = 1;
  LinkCosts link;          ///< of every node; with a host_link, of every host
  OverlapFactors overlap;  ///< of every node
  std::vector<std::uint32_t>
      host;                ///< per node: which machine it is on (nodes on one machine share cores)
  int cores_per_host = 0;  ///< 0: cores are not a shared resource
  /// How long a thread that encodes or decodes keeps its core where others wait for one; 0: they
  /// need not wait.
  double core_turn_s = 0;
  /// Bytes per second that the cores of a host read and write together, which they share where they
  /// are shared themselves and the model says what its computation moves; 0: not known.
  double host_memory_bandwidth = 0;
  std::vector<double> compute_speed;  ///< per node: 1 is nominal, 0.5 takes twice as long
  /// Of every node, to the others on its host, which then share one `link` to other hosts.
  std::optional<LinkCosts> host_link = {};
  std::uint32_t gpus_per_node = 1;        ///< G
  GpuLinkCosts gpu_link = {};             ///< matters if G > 1
  std::optional<RackCosts> rack = {};     ///< nodes that share a host need a host_link then
  std::vector<SlowLink> slow_links = {};  ///< not where there are racks
  /// Every node is a site, `link` what joins it to others, and gpus_per_node counts the GPUs of all
  /// its machines. Without racks and a host_link.
  std::optional<SiteCosts> site = {};
  /// Hosts are Profile::machine, so that links of collectives say how many of them they span.
  bool of_machine = false;
};

/// The machines that a node consists of: 1, or a site's.
inline std::uint32_t machines_per_node(const Cluster& cluster) {
  return cluster.site ? cluster.site->nodes : 1;
}

inline std::uint32_t gpus_per_machine(const Cluster& cluster) {
  return cluster.gpus_per_node / machines_per_node(cluster);
}

/// What local_s() grows by for each byte.
double local_s_per_byte(const Cluster& cluster);

/// Seconds of a reduce-scatter or an all-gather of `bytes` among the GPUs of a node, in a ring:
/// (G−1)·o + (G−1)/G·bytes/B for the GPUs of a machine, and in a site of n machines, whose GPUs
/// share their machine's link, (n−1)·(o+L) + (n−1)/n·bytes/B.
double local_s(const Cluster& cluster, std::int64_t bytes);

/// What the messages between two nodes pass.
enum class Path : std::uint8_t {
  kWithinHost,    ///< both nodes' ports of the host link
  kBetweenHosts,  ///< both hosts' links (without a host link: both nodes')
  kBetweenRacks,  ///< these, the one rack's uplink and the other's downlink
};
inline constexpr int kPaths = 3;

/// Some pairs of nodes may pass other links than others.
inline bool is_hierarchical(const Cluster& cluster) { return cluster.host_link || cluster.rack; }

/// True if nodes on one host share a link or cores, so that it matters which nodes are on it.
inline bool shares_hosts(const Cluster& cluster) {
  return is_hierarchical(cluster) || cluster.cores_per_host > 0;
}

inline Path path(const Cluster& cluster, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t here = cluster.host[from], there = cluster.host[to];
  if (cluster.host_link && here == there) return Path::kWithinHost;
  if (!cluster.rack || here / cluster.rack->hosts == there / cluster.rack->hosts) {
    return Path::kBetweenHosts;
  }
  return Path::kBetweenRacks;
}

/// Costs of a message over a slow link.
LinkCosts slow_link_costs(const Cluster& cluster, std::uint32_t place);

/// Some nodes are on one machine.
bool share_a_host(const Cluster& cluster);

/// All pairs of nodes have one path, which crosses no rack: what holds without hierarchy holds
/// here.
bool is_uniform(const Cluster& cluster);

/// Bytes per second of a rack's uplink, and of its downlink.
inline double rack_bandwidth(const Cluster& cluster) {
  return cluster.rack->hosts * cluster.link.bandwidth / cluster.rack->oversubscription;
}

/// Costs of a message along a path: the bandwidth of its slowest link.
LinkCosts path_costs(const Cluster& cluster, Path path);

/// Nodes of the first host.
std::uint32_t nodes_per_host(const Cluster& cluster);

/// Nodes of the first host for each of its cores; 1 if there are no more of them, or cores are not
/// shared.
double ranks_per_core(const Cluster& cluster);

/// Whether hosts have so many nodes each: nodes 0 … n−1 are on host 0, n … 2n−1 on host 1, and so
/// on.
bool fills_hosts(const Cluster& cluster);

/// How the nodes of a group send to each other.
enum class Pattern : std::uint8_t {
  kRing,      ///< each to its neighbour
  kExchange,  ///< each to every other
};

/// What groups of nodes have between them.
struct GroupNetwork {
  LinkCosts link;            ///< of each node, while all groups are at work
  bool within_host = false;  ///< each group is on one host
  /// How many times what a node sends passes its host's link, for all nodes of the host together.
  double flows = 1;
};

/// Of groups of so many nodes, each a multiple of `stride` from the others, which are all alike.
/// Within hosts only where these have a host_link.
GroupNetwork group_network(const Cluster& cluster, std::uint32_t nodes, std::uint32_t stride,
                           Pattern pattern);

/// Why such groups are not all alike: hosts have different numbers of nodes, or a group has
/// different numbers of nodes on its hosts or in its racks. Empty: they are.
std::string unlike_groups(const Cluster& cluster, std::uint32_t nodes, std::uint32_t stride);

/// Costs of a step of the ring through all nodes in their order, the slowest.
LinkCosts ring_costs(const Cluster& cluster);

/// N nodes as the profile was measured: each on a machine of its own, or all on one (shared_host).
Cluster cluster_from_profile(const Profile& profile, std::uint32_t nodes);

/// How many nodes a cluster YAML says that it has; none: it does not say.
std::optional<std::uint32_t> nodes_of_cluster(const std::string& path);

/// Rule for a number of nodes that both a cluster file and its reader give: they must agree, or
/// the reader's wins, as in a what-if.
enum class NodeCount : std::uint8_t { kOne, kAsAsked };

/// Reads a cluster YAML (docs/profiles.md lists the keys); what it does not say is taken from the
/// profile. With `nodes` > 0, another number of nodes in the file is an InputError.
Cluster read_cluster(const std::string& path, const Profile& profile, std::uint32_t nodes,
                     NodeCount rule = NodeCount::kOne);

}  // namespace hipress::costs
