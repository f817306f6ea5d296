#pragma once

#include "tools/plan/options.hpp"

namespace hipress::planner {

/// If the options name several numbers of hosts, prints what each additional host gains and returns
/// true.
bool answer_hosts(const Options& options);

}  // namespace hipress::planner
