#pragma once

#include <memory>

#include "requests/planned.hpp"

/// Candidates of a request "plan": one plan for each schedule, and for each rule of layers.
namespace hipress::requests {

/// Finds the request's best candidate and compares it with baselines. planner::complete() has not
/// run yet. Throws io::InputError if no candidate is possible.
std::unique_ptr<Planned> best_candidate(const PlanRequest& request, const Hooks& hooks);

/// Prepares the request's problem, for reading schedules.
std::unique_ptr<planner::PreparedRequest> prepare(const PlanRequest& request, const Hooks& hooks);

/// Throws InputError for invalid values, and for fields without another field that they need.
void check(const PlanRequest& request);

}  // namespace hipress::requests
