#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/scenario.hpp"

namespace hipress::sim {

/// Parameters that were asked for explicitly, which should therefore have mattered. A default that
/// has no effect misleads nobody.
struct Given {
  std::string plan = {};                      ///< as resolve_plan takes it
  std::optional<std::string> algorithm = {};  ///< what a `y` without a fifth field was to mean
  bool topology = false;
  bool network = false;
  bool transfer_order = false;
  bool profile = false;
  std::string cluster = {};  ///< the cluster file; empty: none
};

/// One sentence for each given parameter that another value of would have left everything as it is,
/// every task's times included: "--network has no effect: nothing is sent". By reasoning where that
/// is exact, else by another simulation each (not for graphs above 4 million tasks, where that
/// would take long). `graph` and `result`, which needs its timeline, are the scenario's.
std::vector<std::string> without_effect(const Scenario& scenario, const casync::TaskGraph& graph,
                                        const Result& result, const Given& given);

}  // namespace hipress::sim
