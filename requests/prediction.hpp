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

/// What came of simulating a scenario.
struct Prediction {
  casync::TaskGraph graph;
  std::vector<std::string> names;  ///< of gradients and bulk groups, by Task::gradient
  std::string why_whole;           ///< of a graph that is not folded: why
  std::optional<sim::FoldingBounds> folding_bounds;  ///< of one that is folded with an error
  sim::Result result;                                ///< with its timeline; of all iterations
  sim::Picoseconds iteration{};                      ///< one step's time
  std::uint32_t steps = 1;                           ///< of the schedule's period
  sim::Response response;                            ///< of that time
  std::optional<sim::SteadyState> steady;            ///< of back-to-back iterations
  std::vector<casync::TaskId> critical_path;         ///< in order of time
  sim::Utilisation utilisation;
  sim::Slowdowns slowdowns;
  sim::Traffic traffic;
  std::vector<sim::Sensitivity> sensitivities;  ///< empty unless asked for
  std::optional<sim::Replicas> replicas = {};   ///< none unless asked for
  bool explains_interval = false;               ///< whether reports say what the interval comes of
  double simulation_s = 0;                      ///< real time
  std::string default_profile = {};             ///< which, and why it speaks; empty: one was given
};

/// Forward and backward of one step, as they were simulated.
inline sim::Picoseconds compute_time(const Prediction& prediction) {
  const sim::Picoseconds all =
      prediction.steady ? prediction.steady->compute : prediction.result.compute;
  return all / prediction.steps;
}

/// The share of a step that is computation.
sim::ComputeUtilisation compute_utilisation(const sim::Scenario& scenario,
                                            const Prediction& prediction);

/// From the start of backward, on the node that starts it first, to the end of the iteration. Where
/// iterations are simulated back to back, the period less its forward tasks. Of a sharded schedule,
/// whose forward waits for gathers, the whole iteration.
inline sim::Picoseconds synchronisation_time(const Prediction& prediction) {
  if (!prediction.graph.groups.empty()) return prediction.iteration;
  const sim::Picoseconds forward =
      prediction.steady ? prediction.steady->forward : prediction.result.forward;
  return prediction.iteration - forward / prediction.steps;
}

/// 10th and 90th percentile of the times above, by how the profile's costs are spread.
struct Intervals {
  sim::Interval iteration, synchronisation, compute, exposed_communication;
};
Intervals intervals_of(const sim::Scenario& scenario, const Prediction& prediction);

/// Of one step, on the node whose computation is slowed most.
sim::Slowdown slowdown_of_step(const sim::Scenario& scenario, const Prediction& prediction);

/// Per node; of one step, the mean over a period.
std::vector<std::int64_t> bytes_per_iteration(const sim::Scenario& scenario,
                                              const Prediction& prediction);

}  // namespace hipress::requests
