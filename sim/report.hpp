#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "sim/folding.hpp"
#include "sim/replicas.hpp"
#include "sim/scenario.hpp"
#include "sim/sensitivity.hpp"
#include "sim/utilisation.hpp"

namespace hipress::sim {

/// What came of simulating a scenario.
struct Prediction {
  casync::TaskGraph graph;
  std::string why_whole;                        ///< of a graph that is not folded: why
  std::optional<FoldingBounds> folding_bounds;  ///< of one that is folded with an error
  Result result;                                ///< with its timeline
  std::vector<casync::TaskId> critical_path;    ///< in order of time
  Utilisation utilisation;
  std::vector<Sensitivity> sensitivities;  ///< empty unless asked for
  std::optional<Replicas> replicas = {};   ///< none unless asked for
  double simulation_s = 0;                 ///< real time
};

/// For people: times, bytes, where the critical path goes, how busy resources are.
void print_report(std::ostream& out, const Scenario& scenario, const Prediction& prediction);
/// For programs: one JSON object with everything.
void print_json(std::ostream& out, const Scenario& scenario, const Prediction& prediction);

}  // namespace hipress::sim
