#pragma once

#include <memory>

#include "requests/planned.hpp"

/// The plans among which a request "plan" chooses: one for each schedule, and for each rule of
/// layers.
namespace hipress::requests {

/// The best of the request's candidates, with its time beside those of baselines, but without what
/// planner::complete() adds. io::InputError where there is none.
std::unique_ptr<Planned> best_candidate(const PlanRequest& request, const Hooks& hooks);

/// The request's problem, to read schedules by.
std::unique_ptr<planner::PreparedRequest> prepare(const PlanRequest& request, const Hooks& hooks);

/// InputError for what one field of a plan's request says without another, and for values that are
/// none.
void check(const PlanRequest& request);

}  // namespace hipress::requests
