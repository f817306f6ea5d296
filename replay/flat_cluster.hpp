#pragma once

#include <span>
#include <string>

#include "costs/cluster.hpp"

namespace hipress::replay {

/// Which machine each rank of a job is on.
struct RankPlaces {
  /// By rank; the same text means the same machine, an empty one a machine of its own.
  std::span<const std::string> machines;
  bool threads = false;  ///< all ranks are threads of one process
};

/// A cluster that ranks can be compared with, and what of the one asked for it leaves out.
struct Comparable {
  costs::Cluster cluster;
  std::string differs;  ///< a sentence; empty: nothing is left out
};

/// Each rank is one node with nothing below it, on some machine. If a cluster's nodes lie on
/// machines as the ranks do, all of it but the GPUs within nodes is compared. Of any other cluster
/// with links inside hosts or racks, only the part between nodes is: each node has a link of its
/// own, on machines as in `flat`, the profile's own cluster of as many nodes.
Comparable comparable(const costs::Cluster& cluster, const costs::Cluster& flat,
                      const RankPlaces& ranks);

}  // namespace hipress::replay
