#include "planner/problem/levels.hpp"

#include "costs/levels.hpp"

namespace hipress::planner {

std::unique_ptr<const OtherLevels> OtherLevels::of(const Problem& problem,
                                                   std::vector<std::string>& diagnostics) {
  const Machines& machines = *problem.machines;
  const std::optional<costs::Cluster> other = costs::in_other_levels(machines.cluster);
  if (!other) return nullptr;
  if (machines.network == sim::Network::kPort && !costs::is_uniform(*other)) {
    diagnostics.push_back(
        "plans with every GPU a node are left out: on network port, GPUs cannot share their "
        "host's link (take --network fair)");
    return nullptr;
  }
  return std::make_unique<const OtherLevels>(problem, *other);
}

OtherLevels::OtherLevels(const Problem& problem, const costs::Cluster& cluster)
    : machines_{problem.machines->profile, cluster, problem.machines->network}, problem_(problem) {
  problem_.machines = &machines_;
  problem_.nodes = cluster.nodes;
}

}  // namespace hipress::planner
