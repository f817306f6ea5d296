#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "requests/simulate.hpp"

namespace hipress::requests {

/// Effect of what a simulate request says on its result. Each function of a field returns why any
/// other value would leave every task's times as they are; empty: it would not. What cannot be
/// judged exactly by reasoning is judged by one more simulation, unless the graph has more than
/// `most_tasks`, which would take too long.
struct Effect {
  std::string of_algorithm() const;
  std::string of_profile() const;
  std::string of_topology() const;
  std::string of_option(std::string_view name);  ///< of the plan's options (plans::PlanOptions)
  std::string of_network();
  std::string of_transfer_order();
  /// A sentence for each key of the cluster file that has no effect.
  std::vector<std::string> of_cluster();
  /// Notes a field that is not judged if a simulation takes long.
  bool may_simulate(std::string_view field);

  const SimulateRequest& request;
  const sim::Scenario& scenario;
  const casync::TaskGraph& graph;  ///< the scenario's
  const sim::Result& result;       ///< with its timeline
  std::uint32_t most_tasks = 0;
  std::string unchecked = {};  ///< the fields that were not judged
};

/// One sentence for each field, and each key of the cluster file, that is given and has no effect;
/// the last one names those that were not judged.
std::vector<std::string> without_effect(SimulateRequest request, const sim::Scenario& scenario,
                                        const casync::TaskGraph& graph, const sim::Result& result,
                                        std::uint32_t most_tasks = 4'000'000);

}  // namespace hipress::requests
