#pragma once

#include "casync/plan.hpp"
#include "costs/spread.hpp"
#include "sim/forecast.hpp"

namespace hipress::sim {

/// Default number of periods of a schedule to simulate back to back. Schedules whose steps apply
/// the means of the previous period settle within that number.
inline constexpr int kPeriods = 4;

/// Number of iterations to simulate back to back for the time of an iteration in a long run. 1 if
/// every step waits for its own means, and kPeriods (periods, not steps) for other schedules.
/// Sharded schedules: 2, since a step begins when the previous one has ended; but 1 if
/// Plan::shards_in_messages(), since a replay runs each step of such a plan alone.
int iterations_to_settle(const casync::Plan& plan);

/// Share of computation in a step's time, 0 to 1, with its 10th and 90th percentile.
struct ComputeUtilisation {
  double share = 1;
  double p10 = 1, p90 = 1;
};

/// Compute utilisation of a step: `response` is that of its time, `compute_s` its nominal
/// computation. Exposed communication varies by `spread`; computation stays nominal.
ComputeUtilisation compute_utilisation(const Response& response, double compute_s,
                                       const costs::Spread& spread);

/// Share of computation in the sum of computation and exposed communication; 1 if both are 0.
double share_of_compute(double compute_s, double exposed_s);

}  // namespace hipress::sim
