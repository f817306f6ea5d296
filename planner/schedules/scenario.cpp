#include "planner/schedules/scenario.hpp"

#include <utility>

#include "sim/compute_utilisation.hpp"

namespace hipress::planner {

sim::Scenario scenario_of(const Problem& problem, casync::Plan plan) {
  // Every step of a sharded schedule begins when the one before has ended. In messages it is one
  // step that is replayed, and simulated elsewhere.
  const int steps = plan.shards_in_messages() ? 1 : 2;
  const int iterations = plan.schedule.is_sharded() ? steps : sim::kPeriods;
  return {.model = problem.model,
          .plan = std::move(plan),
          .profile = problem.machines->profile,
          .cluster = problem.machines->cluster,
          .network = problem.machines->network,
          .iterations = iterations,
          .stop = [flag = problem.limits.interrupted] { return flag.is_set(); }};
}

}  // namespace hipress::planner
