#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plans/plan_options.hpp"
#include "sim/scenario.hpp"

namespace hipress::requests {

/// Parameters that were asked for explicitly, which should therefore have mattered. A default that
/// has no effect misleads nobody.
struct Given {
  std::string plan = {};                      ///< as planner::resolve_plan() takes it
  plans::PlanOptions plan_options = {};       ///< with which it was changed
  std::optional<std::string> algorithm = {};  ///< codec of plan entries that name none
  plans::Trust trust = {};                    ///< with which the plan was read
  bool topology = false;
  bool network = false;
  bool transfer_order = false;
  bool profile = false;
  std::string cluster = {};    ///< the cluster file; empty: none
  bool seed = false;           ///< of jitter, which is given if the scenario has any
  bool jobs = false;           ///< of replicas
  std::uint32_t replicas = 1;  ///< that are simulated
};

/// Returns one warning for each given parameter that cannot affect the result: any other value
/// leaves every task's times as they are ("`network` has no effect: nothing is sent"). Parameters
/// that cannot be judged exactly by reasoning are judged by one more simulation each. Graphs of
/// more than `most_tasks` would take too long for that; the last sentence then names the parameters
/// that were not checked. `graph` and `result` are the scenario's; `result` needs its timeline.
std::vector<std::string> without_effect(const sim::Scenario& scenario,
                                        const casync::TaskGraph& graph, const sim::Result& result,
                                        const Given& given, std::uint32_t most_tasks = 4'000'000);

}  // namespace hipress::requests
