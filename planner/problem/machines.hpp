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

/// What plans are simulated on.
struct Machines {
  const costs::Profile& profile;
  costs::Cluster cluster;  ///< as many nodes as the plan has
  sim::Network network = sim::Network::kFair;
  /// Of the machine that simulates: a graph that does not fit is folded, or not simulated.
  double memory_bytes = std::numeric_limits<double>::infinity();
  /// For all simulations on the network asked for together; null: they have no end.
  std::shared_ptr<SimulationBudget> budget = nullptr;
};

/// The same machines with that cluster.
Machines at_level(const Machines& machines, costs::Cluster cluster);

/// The machines as far as a network knows them: port knows no bursts, so there they are no reason
/// against folding.
costs::Cluster seen_by(sim::Network network, costs::Cluster cluster);

/// What ends simulations on these machines (sim::Options::stop).
std::function<bool()> stop_of(const Machines& machines);

/// Whether graphs of all nodes, with K = N, have too many tasks to be simulated again and again.
bool whole_graphs_are_too_large(const models::Model& model, std::uint32_t nodes);

}  // namespace hipress::planner
