#pragma once

#include <memory>

#include "requests/planned.hpp"

/// Answer to the request "plan".
namespace hipress::requests {

/// Plans a job. Writes the plan and its page if the request names files for them. Throws
/// io::InputError, before any search, for impossible requests and outputs that cannot be written.
std::unique_ptr<const Planned> plan(const PlanRequest& request, const Hooks& hooks);

/// Answers the request for a plan, a broadcast, a comparison of hosts or a required bandwidth.
io::Document answer(const PlanRequest& request, const Hooks& hooks);

}  // namespace hipress::requests
