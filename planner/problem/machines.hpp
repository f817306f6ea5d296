#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>

#include "costs/cluster.hpp"
#include "costs/profile.hpp"
#include "models/model.hpp"
#include "planner/problem/simulation_budget.hpp"
#include "sim/simulator.hpp"

namespace hipress::planner {

/// Machines, network and limits with which plans are simulated.
struct Machines {
  const costs::Profile& profile;
  costs::Cluster cluster;  ///< has as many nodes as the plan
  sim::Network network = sim::Network::kFair;
  /// Memory of the simulating machine, in bytes. Graphs that do not fit are folded or left out.
  double memory_bytes = std::numeric_limits<double>::infinity();
  /// Time budget shared by all simulations on the requested network; null: unlimited.
  std::shared_ptr<SimulationBudget> budget = nullptr;
};

/// Copy of `machines` with the given cluster.
Machines at_level(const Machines& machines, costs::Cluster cluster);

/// The cluster as the network model sees it. Network `port` ignores bursts, since they prevent
/// folding.
costs::Cluster seen_by(sim::Network network, costs::Cluster cluster);

/// Function for sim::Options::stop: true once Machines::budget is over. Empty without a budget.
std::function<bool()> stop_of(const Machines& machines);

/// True if whole graphs with K = N have too many tasks to be simulated repeatedly.
bool whole_graphs_are_too_large(const models::Model& model, std::uint32_t nodes);

}  // namespace hipress::planner
