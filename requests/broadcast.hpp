#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "costs/machine_options.hpp"
#include "planner/broadcast/broadcast.hpp"
#include "requests/hooks.hpp"
#include "requests/plan_request.hpp"
#include "sim/forecast.hpp"

/// The request "plan" for a broadcast.
namespace hipress::requests {

/// A broadcast request with its inputs and results.
struct PlannedBroadcast {
  /// Reads and checks all inputs, then plans.
  PlannedBroadcast(const PlanRequest& asked, const Hooks& hooks);

  const PlanRequest request;
  const std::string output;  ///< empty: no file is written
  const models::Model model;
  const costs::LoadedMachines loaded;
  const std::vector<std::string> topologies;
  const std::vector<std::string> algorithms;
  std::optional<planner::Machines> machines;
  planner::BroadcastResult found;
  std::optional<sim::Interval> range;  ///< interval of the best time
};

/// Plans a broadcast, and writes the plan if an output is named. Throws io::InputError for
/// impossible requests.
std::unique_ptr<const PlannedBroadcast> plan_broadcast(const PlanRequest& request,
                                                       const Hooks& hooks);

/// Document that --json prints.
io::Document document(const PlannedBroadcast& planned);

/// Name of the choice's codec, or "none".
std::string codec_name(const planner::BroadcastChoice& choice);

}  // namespace hipress::requests
