#pragma once

#include <iosfwd>

#include "requests/prediction.hpp"

namespace hipress::sim {

/// Prints times, bytes, the critical path and the utilisation of resources, as text.
void print_report(std::ostream& out, const Scenario& scenario,
                  const requests::Prediction& prediction);

}  // namespace hipress::sim
