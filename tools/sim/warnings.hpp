#pragma once

#include "tools/sim/options.hpp"
#include "tools/sim/report.hpp"

namespace hipress::sim {

/// Warns of what was given and has no effect.
void warn_of_unused(const Scenario& scenario, const Prediction& prediction,
                    const CommandLine& line);

/// Warns of costs of the prediction that nobody measured.
void warn_of_estimates(const Scenario& scenario, const Prediction& prediction);

}  // namespace hipress::sim
