#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "requests/simulate.hpp"

namespace hipress::requests {

/// Effect of a simulate request's fields on its result. A field's function returns an empty text if
/// some other value of the field would change a task's times; otherwise, the reason why none would.
/// If reasoning cannot decide that exactly, one more simulation does, unless the graph has more
/// than `most_tasks` tasks.
struct Effect {
  std::string of_algorithm() const;
  std::string of_profile() const;
  std::string of_topology() const;
  /// Reason for a field of the plan's options (plans::PlanOptions).
  std::string of_option(std::string_view name);
  std::string of_network();
  std::string of_transfer_order();
  /// One sentence for each key of the cluster file without effect.
  std::vector<std::string> of_cluster();
  /// True if one more simulation is affordable; else notes the field as unchecked.
  bool may_simulate(std::string_view field);

  const SimulateRequest& request;
  const sim::Scenario& scenario;
  const casync::TaskGraph& graph;  ///< graph of the scenario
  const sim::Result& result;       ///< result with its timeline
  std::uint32_t most_tasks = 0;
  std::string unchecked = {};  ///< fields that were not checked
};

/// One sentence for each given field and each key of the cluster file without effect. The last one
/// names the fields that were not checked.
std::vector<std::string> without_effect(SimulateRequest request, const sim::Scenario& scenario,
                                        const casync::TaskGraph& graph, const sim::Result& result,
                                        std::uint32_t most_tasks = 4'000'000);

}  // namespace hipress::requests
