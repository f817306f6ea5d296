#pragma once

#include <iosfwd>

#include "requests/prediction.hpp"

namespace hipress::sim {

/// For people: times, bytes, where the critical path goes, how busy resources are.
void print_report(std::ostream& out, const Scenario& scenario,
                  const requests::Prediction& prediction);

}  // namespace hipress::sim
