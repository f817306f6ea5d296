#pragma once

#include <functional>
#include <memory>
#include <string>

#include "casync/topology.hpp"
#include "io/error.hpp"
#include "sim/simulator.hpp"
#include "sim/steady.hpp"

namespace hipress::sim {

/// All inputs of a prediction in one value. A what-if analysis copies it, changes one member and
/// simulates again.
struct Scenario {
  models::Model model;
  casync::Plan plan;  ///< plan for this model and the cluster's number of nodes
  costs::Profile profile;
  costs::Cluster cluster;
  Network network = Network::kFair;
  /// Number of iterations, which run back to back (periods, if the schedule's period is longer than
  /// a step). A single one ends with a barrier.
  int iterations = 1;
  TransferOrder transfer_order = TransferOrder::kReady;
  std::shared_ptr<const Jitter> jitter = nullptr;  ///< null: every task takes its nominal time
  Jitter::Draws draws = {};
  std::function<bool()> stop = {};  ///< Options::stop
};

/// Graph of the scenario's plan, with message sizes that predict_sizes() takes from the profile.
casync::TaskGraph expand(const Scenario& scenario,
                         casync::Folding folding = casync::Folding::kNone);

enum class Timelines : std::uint8_t { kNone, kRecorded };

/// Simulates `graph`, which is expand(scenario). Throws as simulate() does, and io::InputError if
/// plan and cluster differ in GPUs per node.
inline Result simulate(const Scenario& scenario, const casync::TaskGraph& graph,
                       Timelines timelines = Timelines::kNone) {
  if (scenario.plan.gpus_per_node != scenario.cluster.gpus_per_node) {
    throw io::InputError("the plan is for nodes of " + std::to_string(scenario.plan.gpus_per_node) +
                         " GPUs, the cluster's have " +
                         std::to_string(scenario.cluster.gpus_per_node) +
                         ": give the same number to both");
  }
  return simulate(graph, TaskCosts(scenario.profile, scenario.plan.algorithms), scenario.cluster,
                  {.network = scenario.network,
                   .transfer_order = scenario.transfer_order,
                   .jitter = scenario.jitter.get(),
                   .draws = scenario.draws,
                   .record_timeline = timelines == Timelines::kRecorded,
                   .stop = scenario.stop});
}

/// Number of steps in the schedule's period.
inline std::uint32_t steps_per_period(const Scenario& scenario) {
  return scenario.plan.schedule.timetable(scenario.model).steps;
}

/// Time of a step: until the end of the last task, or, for back-to-back iterations, the period of
/// steady_state(). If the schedule's period has several steps, their mean. Throws as simulate()
/// does.
inline Picoseconds iteration_time(const Scenario& scenario, const casync::TaskGraph& graph) {
  const std::uint32_t steps = steps_per_period(scenario);
  if (scenario.iterations == 1) return simulate(scenario, graph).iteration / steps;
  const Result result = simulate(scenario, graph, Timelines::kRecorded);
  return steady_state(graph, result.timeline, scenario.iterations).period / steps;
}

}  // namespace hipress::sim
