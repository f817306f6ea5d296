#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/compute_utilisation.hpp"
#include "sim/folding.hpp"
#include "sim/forecast.hpp"
#include "sim/replicas.hpp"
#include "sim/scenario.hpp"
#include "sim/sensitivity.hpp"
#include "sim/slowdown.hpp"
#include "sim/traffic.hpp"
#include "sim/utilisation.hpp"

namespace hipress::requests {

/// Result of simulating a scenario.
struct Prediction {
  casync::TaskGraph graph;
  std::vector<std::string> names;  ///< names of gradients and bulk groups, by Task::gradient
  std::string why_whole;           ///< reason why the graph was not folded; empty: folded
  std::optional<sim::FoldingBounds> folding_bounds;  ///< set if folding causes an error
  sim::Result result;                         ///< result of all iterations, with its timeline
  sim::Picoseconds iteration{};               ///< duration of a step
  std::uint32_t steps = 1;                    ///< steps in the schedule's period
  sim::Response response;                     ///< dependence of `iteration` on uncertain costs
  std::optional<sim::SteadyState> steady;     ///< set for back-to-back iterations
  std::vector<casync::TaskId> critical_path;  ///< tasks in chronological order
  sim::Utilisation utilisation;
  sim::Slowdowns slowdowns;
  sim::Traffic traffic;
  std::vector<sim::Sensitivity> sensitivities;  ///< empty: not requested
  std::optional<sim::Replicas> replicas = {};   ///< none: not requested
  bool explains_interval = false;               ///< reports explain the interval
  double simulation_s = 0;                      ///< real time of the simulation
  /// Name and reason of a default profile; empty: a profile was given.
  std::string default_profile = {};
};

/// Simulated forward and backward time of one step.
inline sim::Picoseconds compute_time(const Prediction& prediction) {
  const sim::Picoseconds all =
      prediction.steady ? prediction.steady->compute : prediction.result.compute;
  return all / prediction.steps;
}

/// Share of computation in a step.
sim::ComputeUtilisation compute_utilisation(const sim::Scenario& scenario,
                                            const Prediction& prediction);

/// Time from the start of backward, on the node that starts it first, to the end of the iteration.
/// For back-to-back iterations, it is the period less the forward tasks. For a sharded schedule, it
/// is the whole iteration, since forward waits for gathers.
inline sim::Picoseconds synchronisation_time(const Prediction& prediction) {
  if (!prediction.graph.groups.empty()) return prediction.iteration;
  const sim::Picoseconds forward =
      prediction.steady ? prediction.steady->forward : prediction.result.forward;
  return prediction.iteration - forward / prediction.steps;
}

/// 10th and 90th percentiles of a prediction's times, from the spread of the profile's costs.
struct Intervals {
  sim::Interval iteration, synchronisation, compute, exposed_communication;
};
Intervals intervals_of(const sim::Scenario& scenario, const Prediction& prediction);

/// Slowdown of one step on the node whose computation is slowed most.
sim::Slowdown slowdown_of_step(const sim::Scenario& scenario, const Prediction& prediction);

/// Bytes that each node sends per step; the mean over a period.
std::vector<std::int64_t> bytes_per_iteration(const sim::Scenario& scenario,
                                              const Prediction& prediction);

}  // namespace hipress::requests
