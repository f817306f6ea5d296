#pragma once

#include <memory>

#include "requests/planned.hpp"

/// Answers to the request "plan".
namespace hipress::requests {

/// Plans, and writes the plan and its page if an output or a report is named. Throws
/// io::InputError, before any search, for impossible requests and outputs that cannot be written.
std::unique_ptr<const Planned> plan(const PlanRequest& request, const Hooks& hooks);

/// Answers the request, for any job.
io::Document answer(const PlanRequest& request, const Hooks& hooks);

}  // namespace hipress::requests
