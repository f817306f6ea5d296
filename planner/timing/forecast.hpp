#pragma once

#include <optional>

#include "planner/timing/workbench.hpp"
#include "sim/forecast.hpp"

namespace hipress::planner {

/// How a plan's simulated time depends on what is uncertain, by two more simulations. None where
/// the budget of `machines` leaves no time for them, or the plan's own time is not known.
std::optional<sim::Response> forecast(const models::Model& model, const casync::Plan& plan,
                                      sim::TransferOrder order, std::optional<double> iteration_s,
                                      const Machines& machines, unsigned jobs = 1);

/// The 90th percentile of the plan's iteration, in seconds; none where it has no forecast.
std::optional<double> upper_end_s(const Problem& problem, const TimedPlan& plan);

}  // namespace hipress::planner
