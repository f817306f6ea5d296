#pragma once

#include "casync/plan.hpp"
#include "costs/spread.hpp"
#include "sim/forecast.hpp"

namespace hipress::sim {

/// Default number of a schedule's periods to simulate back to back. Schedules whose steps apply
/// means of the previous period settle within that number.
inline constexpr int kPeriods = 4;

/// Number of iterations of a plan to simulate back to back to get an iteration's time in a long
/// run. 1 if every step waits for its own means; for other schedules kPeriods, which counts
/// periods. 2 for a sharded schedule, whose steps each begin when the previous one has ended; 1 if
/// it runs in messages, since a replay runs such a step alone.
int iterations_to_settle(const casync::Plan& plan);

/// Share of computation in a time, 0 to 1, with its 10th and 90th percentile.
struct ComputeUtilisation {
  double share = 1;
  double p10 = 1, p90 = 1;
};

/// Compute utilisation of a time that has this response and a nominal computation of `compute_s`.
/// Exposed communication varies by `spread`; computation stays nominal.
ComputeUtilisation compute_utilisation(const Response& response, double compute_s,
                                       const costs::Spread& spread);

/// Share of computation in the sum of computation and exposed communication; 1 if both are 0.
double share_of_compute(double compute_s, double exposed_s);

}  // namespace hipress::sim
