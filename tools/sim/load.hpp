#pragma once

#include "costs/machine_options.hpp"
#include "sim/scenario.hpp"
#include "tools/sim/options.hpp"

namespace hipress::sim {

/// The machines that the command line names.
costs::LoadedMachines load_machines(const CommandLine& line);

/// What the command line describes; says what was assumed. io::InputError for what makes no sense.
Scenario load_scenario(const CommandLine& line);

}  // namespace hipress::sim
