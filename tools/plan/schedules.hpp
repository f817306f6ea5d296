#pragma once

#include "requests/hooks.hpp"
#include "tools/plan/options.hpp"

namespace hipress::planner {

/// Answers what is asked about schedules, and prints it.
void run_schedules(const Options& options, const requests::Hooks& hooks);

}  // namespace hipress::planner
