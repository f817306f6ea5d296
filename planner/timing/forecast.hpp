#pragma once

#include <optional>

#include "planner/timing/workbench.hpp"
#include "sim/forecast.hpp"

namespace hipress::planner {

/// Response of a plan's simulated time to uncertain inputs, by two more simulations. Unset if
/// `iteration_s` is, or if the budget of `machines` leaves no time for them.
std::optional<sim::Response> forecast(const models::Model& model, const casync::Plan& plan,
                                      sim::TransferOrder order, std::optional<double> iteration_s,
                                      const Machines& machines, unsigned jobs = 1);

/// 90th percentile of the plan's iteration time, in seconds; unset if there is no forecast.
std::optional<double> upper_end_s(const Problem& problem, const TimedPlan& plan);

}  // namespace hipress::planner
