#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "requests/simulate.hpp"

namespace hipress::requests {

/// Effect of a simulate request's fields on its result. Each function returns the reason why no
/// other value of its field would change a task's times, or an empty text if some value would. If
/// that does not follow from the plan, one more simulation decides, unless the graph has more than
/// `most_tasks` tasks.
struct Effect {
  std::string of_algorithm() const;
  std::string of_profile() const;
  std::string of_topology() const;
  /// Reason for one of the plan's options (plans::PlanOptions).
  std::string of_option(std::string_view name);
  std::string of_network();
  std::string of_transfer_order();
  /// One sentence for each key without effect in the cluster file.
  std::vector<std::string> of_cluster();
  /// True if one more simulation is affordable. Otherwise notes the field as unchecked.
  bool may_simulate(std::string_view field);

  const SimulateRequest& request;
  const sim::Scenario& scenario;
  const casync::TaskGraph& graph;  ///< graph of the scenario
  const sim::Result& result;       ///< result with its timeline
  std::uint32_t most_tasks = 0;
  std::string unchecked = {};  ///< fields that were not checked
};

/// Returns one sentence for each given field without effect, and for each such key of the cluster
/// file. A last sentence names the fields that were not checked.
std::vector<std::string> without_effect(SimulateRequest request, const sim::Scenario& scenario,
                                        const casync::TaskGraph& graph, const sim::Result& result,
                                        std::uint32_t most_tasks = 4'000'000);

}  // namespace hipress::requests
