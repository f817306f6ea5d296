#pragma once

#include "casync/plan.hpp"
#include "costs/spread.hpp"
#include "sim/forecast.hpp"

namespace hipress::sim {

/// Periods of a schedule that are simulated back to back, where nobody says how many: means that
/// are awaited in the next period settle within so many.
inline constexpr int kPeriods = 4;

/// Iterations of a plan to simulate back to back, for the time of one in a long run. One where
/// every step waits for its own means; else kPeriods of a period, and two of a sharded schedule,
/// each of whose steps begins when the one before has ended. In messages a sharded step is one that
/// is replayed, alone.
int iterations_to_settle(const casync::Plan& plan);

/// The share of a time that is computation, 0 to 1, and its 10th and 90th percentile.
struct ComputeUtilisation {
  double share = 1;
  double p10 = 1, p90 = 1;
};

/// Of a time with that response, of which `compute_s` is computation. What is exposed varies, and
/// the nominal computation is laid beside it.
ComputeUtilisation compute_utilisation(const Response& response, double compute_s,
                                       const costs::Spread& spread);

/// The share of computation where so much is exposed beside it.
double share_of_compute(double compute_s, double exposed_s);

}  // namespace hipress::sim
