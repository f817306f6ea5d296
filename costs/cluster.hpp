#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costs/profile.hpp"

namespace hipress::costs {

/// The machines that nodes run on and the links between them.
struct Cluster {
  std::string name;
  std::uint32_t nodes = 1;
  LinkCosts link;          ///< of every node
  OverlapFactors overlap;  ///< of every node
  std::vector<std::uint32_t>
      host;                ///< per node: which machine it is on (nodes on one machine share cores)
  int cores_per_host = 0;  ///< 0: cores are not a shared resource
  std::vector<double> compute_speed;  ///< per node: 1 is nominal, 0.5 takes twice as long
};

/// N nodes as the profile was measured: each on a machine of its own, or all on one (shared_host).
Cluster cluster_from_profile(const Profile& profile, std::uint32_t nodes);

/// Reads a cluster YAML (costs/README.md lists the keys); what it does not say is taken from the
/// profile. With `nodes` > 0, another number of nodes in the file is an InputError.
Cluster read_cluster(const std::string& path, const Profile& profile, std::uint32_t nodes);

}  // namespace hipress::costs
