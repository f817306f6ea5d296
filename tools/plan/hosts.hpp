#pragma once

#include "tools/plan/options.hpp"

namespace hipress::planner {

/// Prints what each host more adds, if the options name several numbers of hosts, and is true then.
/// A single number goes into the request.
bool answer_hosts(Options& options);

}  // namespace hipress::planner
