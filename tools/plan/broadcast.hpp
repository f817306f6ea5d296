#pragma once

#include "requests/hooks.hpp"
#include "tools/plan/options.hpp"

/// `hipress-plan --job broadcast`.
namespace hipress::planner {

/// Plans a broadcast, writes the plan and prints what it takes. io::InputError for a request that
/// cannot be done.
void run_broadcast(const Options& options, const requests::Hooks& hooks);

}  // namespace hipress::planner
