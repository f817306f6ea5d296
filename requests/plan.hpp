#pragma once

#include <memory>

#include "requests/planned.hpp"

/// What the request "plan" is answered with.
namespace hipress::requests {

/// Plans, and writes the plan if an output is named, and its page if a report is. io::InputError,
/// before any search, for what cannot be done or written.
std::unique_ptr<const Planned> plan(const PlanRequest& request, const Hooks& hooks);

/// Answers the request, of whichever job.
io::Document answer(const PlanRequest& request, const Hooks& hooks);

}  // namespace hipress::requests
