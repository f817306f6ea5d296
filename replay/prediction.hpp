#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "casync/plan.hpp"
#include "casync/task_graph.hpp"
#include "costs/machine_options.hpp"
#include "costs/profile.hpp"
#include "replay/flat_cluster.hpp"
#include "sim/forecast.hpp"
#include "sim/simulator.hpp"

namespace hipress::replay {

/// Options of predict().
struct PredictionOptions {
  costs::MachineOptions machines;
  sim::Network network = sim::Network::kFair;
  /// Load of a rank on its host while it replays computation.
  casync::Computing computing = {};
  int iterations = 1;  ///< number of iterations whose median is predicted
};

struct Prediction {
  sim::Result result;  ///< result with its timeline
  sim::Interval interval;
  std::string differs;  ///< Comparable::differs
};

/// Checks the arguments of predict() before a replay. Throws io::InputError for a cluster file that
/// does not fit the number of nodes, and for a profile that lacks one of the algorithms.
void check_prediction(const costs::Profile& profile,
                      const std::vector<casync::Algorithm>& algorithms, std::uint32_t nodes,
                      const PredictionOptions& options);

/// Simulates the graph that ranks in these places run, and computes the interval of its time from
/// the spread of costs. Throws as sim::simulate() and check_prediction() do.
Prediction predict(const casync::TaskGraph& graph, const std::vector<casync::Algorithm>& algorithms,
                   const costs::Profile& profile, const costs::Spread& spread,
                   const RankPlaces& places, const PredictionOptions& options);

}  // namespace hipress::replay
