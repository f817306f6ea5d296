#pragma once

#include "tools/plan/options.hpp"

namespace hipress::planner {

/// If several numbers of hosts are given, prints the gain from each more host and returns true.
bool answer_hosts(const Options& options);

}  // namespace hipress::planner
