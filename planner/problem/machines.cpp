#include "planner/problem/machines.hpp"

#include <utility>

#include "sim/graph_size.hpp"

namespace hipress::planner {
namespace {

constexpr double kMaxWholeTasks = 4e6;  // largest graph with K = N that can be simulated repeatedly
constexpr double kTasksPerMessage = 3.5;

}  // namespace

Machines at_level(const Machines& machines, costs::Cluster cluster) {
  return {machines.profile, std::move(cluster), machines.network, machines.memory_bytes,
          machines.budget};
}

std::function<bool()> stop_of(const Machines& machines) {
  if (!machines.budget) return {};
  return [budget = machines.budget] { return budget->over(); };
}

costs::Cluster seen_by(sim::Network network, costs::Cluster cluster) {
  if (network == sim::Network::kPort) cluster.link.burst_bytes = 0;
  return cluster;
}

bool whole_graphs_are_too_large(const models::Model& model, std::uint32_t nodes) {
  const double n = nodes;
  const double messages = 2 * n * (n - 1) * static_cast<double>(model.gradients.size());
  return messages * kTasksPerMessage > kMaxWholeTasks;
}

}  // namespace hipress::planner
