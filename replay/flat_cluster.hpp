#pragma once

#include <span>
#include <string>

#include "costs/cluster.hpp"

namespace hipress::replay {

/// Machines of a job's ranks.
struct RankPlaces {
  /// Machine of each rank. Equal texts mean the same machine; an empty text means a machine of its
  /// own.
  std::span<const std::string> machines;
  bool threads = false;  ///< all ranks are threads of one process
};

/// Cluster with which a replay's ranks can be compared.
struct Comparable {
  costs::Cluster cluster;
  std::string differs;  ///< a sentence about the parts left out; empty: nothing is left out
};

/// Reduces a cluster to the part that a replay reproduces, in which each rank is one node. Sites,
/// GPUs within nodes and slow links are left out. Links within hosts, and racks, remain if two
/// nodes share a host exactly when their ranks share a machine. Otherwise each node has a link of
/// its own, and hosts are those of `flat`, the profile's own cluster of the same number of nodes.
Comparable comparable(const costs::Cluster& cluster, const costs::Cluster& flat,
                      const RankPlaces& ranks);

}  // namespace hipress::replay
