#pragma once

#include "sim/scenario.hpp"
#include "tools/sim/options.hpp"
#include "tools/sim/report.hpp"

namespace hipress::sim {

/// Simulates the scenario, and whatever else the command line asks for. io::InputError with what
/// would make it smaller if the graph does not fit in memory.
Prediction predict(const Scenario& scenario, const CommandLine& line);

}  // namespace hipress::sim
