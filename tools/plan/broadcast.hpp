#pragma once

#include "requests/hooks.hpp"
#include "tools/plan/options.hpp"

/// `hipress-plan --job broadcast`: plans of broadcasts.
namespace hipress::planner {

/// Plans a broadcast, writes the plan and prints its times. Throws as plan_broadcast() does.
void run_broadcast(const Options& options, const requests::Hooks& hooks);

}  // namespace hipress::planner
