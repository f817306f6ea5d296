#include "planner/problem/levels.hpp"

#include <utility>

#include "costs/levels.hpp"

namespace hipress::planner {

std::unique_ptr<const OtherLevels> OtherLevels::of(const Problem& problem,
                                                   std::vector<std::string>& diagnostics) {
  const Machines& machines = *problem.machines;
  const std::optional<costs::Cluster> other = costs::in_other_levels(machines.cluster);
  if (!other) return nullptr;
  if (machines.network == sim::Network::kPort && !costs::is_uniform(*other)) {
    diagnostics.emplace_back(
        "plans with every GPU a node are left out: on network port, GPUs cannot share their "
        "host's link (take `network` fair)");
    return nullptr;
  }
  return std::make_unique<const OtherLevels>(problem, machines, *other);
}

std::optional<costs::Cluster> as_collectives_see(const Machines& machines) {
  std::optional<costs::Cluster> flat = costs::in_one_level(machines.cluster);
  if (flat && machines.network == sim::Network::kPort && !costs::is_uniform(*flat)) return {};
  return flat;
}

OtherLevels::OtherLevels(const Problem& problem, const Machines& machines, costs::Cluster cluster)
    : machines_(at_level(machines, std::move(cluster))), problem_(problem) {
  problem_.machines = &machines_;
  problem_.nodes = machines_.cluster.nodes;
}

GpuProblem::GpuProblem(const Problem& problem)
    : machines_(at_level(*problem.machines, costs::of_gpus(problem.machines->cluster))),
      problem_(problem) {
  problem_.machines = &machines_;
  problem_.nodes = machines_.cluster.nodes;
}

}  // namespace hipress::planner
