#include "replay/flat_cluster.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <vector>

namespace hipress::replay {
namespace {

/// True if two nodes share a host exactly when the two ranks share a machine.
bool lie_alike(const costs::Cluster& cluster, const RankPlaces& ranks) {
  if (ranks.machines.size() != cluster.nodes) return false;
  std::map<std::string, std::uint32_t> host_of;
  std::map<std::uint32_t, std::string> machine_of;
  for (std::uint32_t rank = 0; rank < cluster.nodes; ++rank) {
    const std::string machine = ranks.machines[rank].empty() ? fmt::format("of rank {}", rank)
                                                             : "machine " + ranks.machines[rank];
    const std::uint32_t host = cluster.host[rank];
    if (host_of.emplace(machine, host).first->second != host) return false;
    if (machine_of.emplace(host, machine).first->second != machine) return false;
  }
  return true;
}

std::string what_ranks_are(const costs::Cluster& cluster, const RankPlaces& ranks) {
  if (ranks.threads) return fmt::format("{} threads on one machine", cluster.nodes);
  return fmt::format("{} processes with one device each", cluster.nodes);
}

}  // namespace

Comparable comparable(const costs::Cluster& cluster, const costs::Cluster& flat,
                      const RankPlaces& ranks) {
  Comparable found{.cluster = cluster, .differs = {}};
  std::vector<std::string> left_out;
  if (cluster.site) {
    left_out.push_back(fmt::format("{} nodes per site", cluster.site->nodes));
    found.cluster.site = std::nullopt;
  }
  if (cluster.gpus_per_node > 1) {
    const std::uint32_t gpus = costs::gpus_per_machine(cluster);
    if (gpus > 1) left_out.push_back(fmt::format("{} GPUs per node", gpus));
    found.cluster.gpus_per_node = 1;
    found.cluster.gpu_link = {};
  }
  if (costs::is_hierarchical(cluster) && !lie_alike(cluster, ranks)) {
    if (cluster.host_link) left_out.push_back("links within hosts");
    if (!cluster.racks.empty()) left_out.push_back("racks");
    found.cluster.host_link = std::nullopt;
    found.cluster.racks.clear();
    found.cluster.cards = {};
    found.cluster.host = flat.host;
    found.cluster.cores_per_host = flat.cores_per_host;
  }
  if (!cluster.slow_links.empty()) {
    left_out.emplace_back(cluster.site ? "links between pairs of sites" : "slow links");
    found.cluster.slow_links.clear();
  }
  if (!left_out.empty()) {
    found.differs = fmt::format(
        "the cluster has {}; these ranks are {}: only the part between nodes is compared",
        fmt::join(left_out, " and "), what_ranks_are(cluster, ranks));
  }
  return found;
}

}  // namespace hipress::replay
