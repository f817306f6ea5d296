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
  std::optional<std::string> algorithm = {};  ///< what a `y` without a fifth field was to mean
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

/// One sentence for each given parameter that another value of would have left everything as it is,
/// every task's times included: "--network has no effect: nothing is sent". By reasoning where that
/// is exact, else by another simulation each; for graphs of more than `most_tasks`, where that
/// would take more than a second or two, the last sentence names the parameters that were not
/// checked. `graph` and `result`, which needs its timeline, are the scenario's.
std::vector<std::string> without_effect(const sim::Scenario& scenario,
                                        const casync::TaskGraph& graph, const sim::Result& result,
                                        const Given& given, std::uint32_t most_tasks = 4'000'000);

}  // namespace hipress::requests
