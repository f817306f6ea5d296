#pragma once

#include "sim/plan_source.hpp"

namespace hipress::sim {

/// `hipress-sim sweep`, with `sweep` as its argv[0], and with plans that `source` makes. Returns
/// the exit status.
int run_sweep_command(int argc, char** argv, const PlanSource& source);

}  // namespace hipress::sim
