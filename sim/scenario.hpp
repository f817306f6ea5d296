#pragma once

#include <memory>

#include "casync/strategy.hpp"
#include "sim/simulator.hpp"

namespace hipress::sim {

/// All that a prediction depends on, in one value: what asks "and if that were different?" copies
/// it, changes one thing and simulates again.
struct Scenario {
  models::Model model;
  casync::Plan plan;  ///< of this model, for as many nodes as the cluster has
  costs::Profile profile;
  costs::Cluster cluster;
  Network network = Network::kFair;
  TransferOrder transfer_order = TransferOrder::kReady;
  std::shared_ptr<const Jitter> jitter = nullptr;  ///< null: every task takes its nominal time
  Jitter::Draws draws = {};
};

enum class Timelines : std::uint8_t { kNone, kRecorded };

/// Simulates `graph`, which is expand(scenario.model, scenario.plan). Throws as simulate does.
inline Result simulate(const Scenario& scenario, const casync::TaskGraph& graph,
                       Timelines timelines = Timelines::kNone) {
  return simulate(graph, TaskCosts(scenario.profile, scenario.plan.algorithms), scenario.cluster,
                  {.network = scenario.network,
                   .transfer_order = scenario.transfer_order,
                   .jitter = scenario.jitter.get(),
                   .draws = scenario.draws,
                   .record_timeline = timelines == Timelines::kRecorded});
}

}  // namespace hipress::sim
