#pragma once

#include "tools/plan/options.hpp"

namespace hipress::planner {

/// If the request has two or more numbers of hosts, prints how the job's throughput grows with
/// them, and returns true.
bool answer_hosts(const Options& options);

}  // namespace hipress::planner
