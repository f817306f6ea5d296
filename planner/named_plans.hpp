#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "planner/search.hpp"
#include "plans/plan_file.hpp"

/// Plans that need machines to be made, under the names that hipress-sim, hipress-exec and sweeps
/// take for --plan.
namespace hipress::planner {

/// What such a plan is made for. Everything must outlive the call.
struct PlanRequest {
  const models::Model& model;
  std::string strategy;   ///< a row of casync::strategies(), or "best" for plan best
  std::string algorithm;  ///< that baselines compress with, and plan best may
  const Machines& machines;
  Limits limits = {};  ///< of plan best
};

/// "best": searched as hipress-plan does, with fp16 beside the algorithm and with groups; or any of
/// all_baselines() but none, fp16 and all, which plans::resolve_plan() makes for whatever machines.
/// None for other names, and for the names of files. io::InputError if there is no such plan with
/// this strategy, or if it is too large to be simulated.
std::optional<plans::ResolvedPlan> named_plan(std::string_view name, const PlanRequest& request);

/// "best, threshold_262144, secopa, …": for help and errors.
std::string named_plans();

}  // namespace hipress::planner
