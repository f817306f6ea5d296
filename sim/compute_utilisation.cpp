#include "sim/compute_utilisation.hpp"

#include <algorithm>

namespace hipress::sim {

int iterations_to_settle(const casync::Plan& plan) {
  if (plan.schedule == casync::Schedule()) return 1;
  if (!plan.schedule.row().sharded) return kPeriods;
  return plan.shards_in_messages() ? 1 : 2;
}

double share_of_compute(double compute_s, double exposed_s) {
  const double all_s = compute_s + std::max(0.0, exposed_s);
  return all_s > 0 ? compute_s / all_s : 1;
}

ComputeUtilisation compute_utilisation(const Response& response, double compute_s,
                                       const costs::Spread& spread) {
  const Interval exposed = interval(without_compute(response, compute_s), spread);
  return {.share = share_of_compute(compute_s, response.time_s - compute_s),
          .p10 = share_of_compute(compute_s, exposed.p90_s),
          .p90 = share_of_compute(compute_s, exposed.p10_s)};
}

}  // namespace hipress::sim
