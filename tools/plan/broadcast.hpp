#pragma once

#include "tools/plan/options.hpp"

/// `hipress-plan --job broadcast`.
namespace hipress::planner {

/// Plans a broadcast, writes the plan and prints what it takes. io::InputError for a request that
/// cannot be done.
void run_broadcast(const Options& options);

/// io::InputError for options of broadcasts where --job is another.
void refuse_broadcast_options(const BroadcastOptions& options);

}  // namespace hipress::planner
