#pragma once

#include <memory>

#include "requests/planned.hpp"

/// Candidates that may answer a request "plan": one plan per schedule and rule for layers.
namespace hipress::requests {

/// Finds the request's best candidate and compares it with baselines. The caller then runs
/// planner::complete(). Throws io::InputError if no candidate is possible.
std::unique_ptr<Planned> best_candidate(const PlanRequest& request, const Hooks& hooks);

/// Prepares the request's problem, with the model that asked_schedules() needs.
std::unique_ptr<planner::PreparedRequest> prepare(const PlanRequest& request, const Hooks& hooks);

/// Throws InputError for invalid values, and for fields that need another field that is not given.
void check(const PlanRequest& request);

}  // namespace hipress::requests
