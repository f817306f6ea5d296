#pragma once

#include "tools/plan/options.hpp"

namespace hipress::planner {

/// Prints what each additional host gains if the options name several numbers of hosts, and is true
/// then.
bool answer_hosts(const Options& options);

}  // namespace hipress::planner
