#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costs/profile.hpp"

namespace hipress::costs {

/// Range of compute speeds and oversubscriptions in a file. Values outside it are mistakes, and
/// could make durations overflow.
inline constexpr double kMinFactor = 1e-3;
inline constexpr double kMaxFactor = 1e3;

/// Maximum number of nodes of a cluster.
inline constexpr std::int64_t kMaxNodes = 1 << 20;

/// Maximum number of GPUs of a machine.
inline constexpr std::int64_t kMaxGpus = 1 << 12;

/// Maximum time slice on a core, in seconds, for which sums of all threads' waits fit into 64 bits.
inline constexpr double kLongestTurn_s = 1;

/// Maximum number of levels of racks of a cluster.
inline constexpr std::size_t kMostLevels = 4;

/// A level of the network: racks of n hosts, with hosts 0 … n−1 in the first rack, and so on. The
/// racks of a higher level consist of whole racks.
struct RackCosts {
  std::uint32_t hosts = 1;  ///< n, in a full rack
  /// Sum of the bandwidths below a rack (n·B at the lowest level), divided by that of its uplink.
  /// The downlink is as fast as the uplink.
  double oversubscription = 1;
  double latency_s = 0;  ///< latency between racks, added to that of the levels below
  bool operator==(const RackCosts&) const = default;
};

/// Network cards of a host. Each has an equal part of the host's link. A node sends and receives
/// through one of them.
struct CardCosts {
  std::uint32_t count = 1;
  std::uint32_t nodes = 0;  ///< consecutive nodes per card; 0: a host's nodes share all cards
  bool operator==(const CardCosts&) const = default;
};

/// Links between the GPUs of one node.
struct GpuLinkCosts {
  double overhead_s = 0;  ///< per step of a ring through them
  double bandwidth = 0;   ///< bytes per second of each GPU, both ways at once
  bool operator==(const GpuLinkCosts&) const = default;
};

/// A link between two hosts or sites that is slower than their own. All messages between them use
/// it.
struct SlowLink {
  std::uint32_t a = 0, b = 0;  ///< hosts or sites; a < b
  double bandwidth = 0;        ///< bytes per second, at most Cluster::link's
  /// Latency. Unset: that of Cluster::link. Between hosts, a latency below that one is raised to
  /// it.
  std::optional<double> latency_s = {};
  bool operator==(const SlowLink&) const = default;
};

/// Machines of a site and the network between them.
struct SiteCosts {
  std::uint32_t nodes = 1;  ///< number of machines per site
  LinkCosts link;           ///< link of each machine
  bool operator==(const SiteCosts&) const = default;
};

/// The machines that nodes run on and the links between them.
struct Cluster {
  std::string name;
  std::uint32_t nodes = 1;
  LinkCosts link;          ///< link of every node; with a host_link, of every host
  OverlapFactors overlap;  ///< slowdown factors of every node
  std::vector<std::uint32_t>
      host;                ///< by node: index of its machine; nodes on one machine share cores
  int cores_per_host = 0;  ///< 0: cores are not a shared resource
  /// Time slice of a codec thread while other threads wait for its core; 0: waits are not modelled.
  double core_turn_s = 0;
  /// Memory bandwidth of all cores of a host together, bytes per second; 0: unknown. Computation
  /// and codecs share it if they share the cores and the model's memory_traffic is known.
  double host_memory_bandwidth = 0;
  std::vector<double> compute_speed;  ///< by node: 1 is nominal, 0.5 takes twice as long
  /// If set, every node's link to other nodes on its host; the nodes of a host then share one
  /// `link` to other hosts. If unset, every node has a `link` of its own to all other nodes.
  std::optional<LinkCosts> host_link = {};
  std::uint32_t gpus_per_node = 1;        ///< G
  GpuLinkCosts gpu_link = {};             ///< matters if G > 1
  std::vector<RackCosts> racks = {};      ///< lowest level first; hosts of several nodes then need
                                          ///< a host_link
  CardCosts cards = {};                   ///< used only with a host_link
  std::vector<SlowLink> slow_links = {};  ///< empty if there are racks
  /// If set, every node is a site, `link` joins it to other sites, and gpus_per_node counts the
  /// GPUs of all its machines. Excludes racks and a host_link.
  std::optional<SiteCosts> site = {};
  /// True if the hosts are those of Profile::machine. Links of collectives then have a span.
  bool of_machine = false;
};

/// Number of machines per node: 1, or that of a site.
inline std::uint32_t machines_per_node(const Cluster& cluster) {
  return cluster.site ? cluster.site->nodes : 1;
}

inline std::uint32_t gpus_per_machine(const Cluster& cluster) {
  return cluster.gpus_per_node / machines_per_node(cluster);
}

/// Slope of local_s(), in seconds per byte.
double local_s_per_byte(const Cluster& cluster);

/// Seconds of a ring reduce-scatter or all-gather of `bytes` among the GPUs of a node. A machine of
/// G GPUs takes (G−1)·o + (G−1)/G·bytes/B over gpu_link. A site of n machines adds
/// (n−1)·(o+L) + (n−1)/n·bytes/B over the machines' link, which the GPUs of a machine share.
double local_s(const Cluster& cluster, std::int64_t bytes);

/// Links that messages between two nodes pass.
enum class Path : std::uint8_t {
  kWithinHost,    ///< both nodes' ports of the host_link
  kBetweenHosts,  ///< both hosts' links, or without a host link both nodes' links
  kBetweenRacks,  ///< also the sender's rack's uplink and the receiver's rack's downlink;
                  ///< kBetweenRacks + k: also those of k more levels
};
inline constexpr int kPaths = 2 + static_cast<int>(kMostLevels);

/// Number of levels at which a message on this path leaves its rack.
inline std::size_t levels_of(Path path) {
  const auto place = static_cast<std::size_t>(path);
  return place < 2 ? 0 : place - 1;
}

/// Path on which a message leaves its rack at `levels` levels; kBetweenHosts if 0.
inline Path between_racks(std::size_t levels) { return static_cast<Path>(1 + levels); }

/// True if different pairs of nodes may use different kinds of links, slow links aside.
inline bool is_hierarchical(const Cluster& cluster) {
  return cluster.host_link || !cluster.racks.empty();
}

/// True if nodes on one host share a link or cores, so the placement of nodes matters.
inline bool shares_hosts(const Cluster& cluster) {
  return is_hierarchical(cluster) || cluster.cores_per_host > 0;
}

inline Path path(const Cluster& cluster, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t here = cluster.host[from], there = cluster.host[to];
  if (cluster.host_link && here == there) return Path::kWithinHost;
  std::size_t levels = cluster.racks.size();
  while (levels > 0) {
    const std::uint32_t hosts = cluster.racks[levels - 1].hosts;
    if (here / hosts != there / hosts) break;
    --levels;
  }
  return between_racks(levels);
}

/// Costs of a message over slow_links[place].
LinkCosts slow_link_costs(const Cluster& cluster, std::uint32_t place);

/// True if any host has several nodes.
bool share_a_host(const Cluster& cluster);

/// True if all pairs of nodes have the same path, and no message passes racks or slow links. The
/// cluster then behaves like one without hierarchy.
bool is_uniform(const Cluster& cluster);

/// Bandwidth of the uplink (and of the downlink) of a full rack of a level, in bytes per second.
double rack_bandwidth(const Cluster& cluster, std::size_t level = 0);

/// Offset of each level in an array of all racks, lowest level first; then the number of racks.
std::vector<std::uint32_t> racks_below(const Cluster& cluster);

/// Link of one card: `link` divided by the number of cards if there is a host_link, else `link`.
LinkCosts card_link(const Cluster& cluster);

/// Index of the link from a node to other hosts: that of its card, or of its host.
inline std::uint32_t card_of(const Cluster& cluster, std::uint32_t node) {
  return cluster.cards.nodes > 0 ? node / cluster.cards.nodes : cluster.host[node];
}

/// Number of rings that a collective runs to use all cards of a host: one per node of the host,
/// each entering it at a different node. 1 if a host has one link.
std::uint32_t rails(const Cluster& cluster);

/// Costs of a message along a path: bandwidth of its slowest link, sum of its latencies.
LinkCosts path_costs(const Cluster& cluster, Path path);

/// Number of nodes on the first host.
std::uint32_t nodes_per_host(const Cluster& cluster);

/// Number of ranks (nodes of the cluster) per core of the first host, but at least 1. Also 1 if
/// cores are not a shared resource, or no hosts are given.
double ranks_per_core(const Cluster& cluster);

/// True if nodes fill hosts in order, n per host: 0 … n−1 on host 0, n … 2n−1 on host 1, and so on.
bool fills_hosts(const Cluster& cluster);

/// Communication pattern within a group of nodes.
enum class Pattern : std::uint8_t {
  kRing,      ///< each node sends to its neighbour
  kExchange,  ///< each node sends to every other
};

/// Network of simultaneous groups of nodes.
struct GroupNetwork {
  LinkCosts link;            ///< link of each node while all groups communicate
  bool within_host = false;  ///< true: each group is on one host, and uses its host_link
  /// Bytes that all nodes of a host together send over the host's link, divided by the bytes that
  /// one node sends; 1 without a host_link.
  double flows = 1;
};

/// Network while all groups of `nodes` nodes, with indices `stride` apart, communicate. The groups
/// must be alike (unlike_groups()).
GroupNetwork group_network(const Cluster& cluster, std::uint32_t nodes, std::uint32_t stride,
                           Pattern pattern);

/// Reason why such groups are not alike, with a remedy: hosts have different numbers of nodes, or
/// hosts or racks divide the groups in different ways. Empty if they are alike.
std::string unlike_groups(const Cluster& cluster, std::uint32_t nodes, std::uint32_t stride);

/// Costs of a step of a ring through all nodes in order: those of the step between the nodes that
/// are farthest apart, with the lowest bandwidth of all steps.
LinkCosts ring_costs(const Cluster& cluster);

/// Cluster of `nodes` nodes with the profile's link, placed as when it was measured: all on one
/// machine if Profile::shared_host, else each on its own.
Cluster cluster_from_profile(const Profile& profile, std::uint32_t nodes);

/// Number of nodes in a cluster YAML: that of sites if it has sites, of GPUs if it names a machine.
/// Unset if the file gives no number.
std::optional<std::uint32_t> nodes_of_cluster(const std::string& path);

/// Rule if both a cluster file and the caller give a number of nodes. kOne: the numbers must agree.
/// kAsAsked, for what-if questions: the caller's number replaces that of the file.
enum class NodeCount : std::uint8_t { kOne, kAsAsked };

/// Reads a cluster YAML (docs/profiles.md lists the keys). Missing keys take the profile's values.
/// If `nodes` is 0, the file gives the number of nodes. Throws InputError with file and line for an
/// unknown key, an invalid value, or, with kOne, a number of nodes other than `nodes`.
Cluster read_cluster(const std::string& path, const Profile& profile, std::uint32_t nodes,
                     NodeCount rule = NodeCount::kOne);

}  // namespace hipress::costs
