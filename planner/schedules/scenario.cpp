#include "planner/schedules/scenario.hpp"

#include <utility>

#include "sim/compute_utilisation.hpp"

namespace hipress::planner {

sim::Scenario scenario_of(const Problem& problem, casync::Plan plan) {
  // Every step of a sharded schedule begins when the one before has ended.
  const bool repeats = !plan.schedule.is_sharded();
  return {.model = problem.model,
          .plan = std::move(plan),
          .profile = problem.machines->profile,
          .cluster = problem.machines->cluster,
          .network = problem.machines->network,
          .iterations = repeats ? sim::kPeriods : 2,
          .stop = [flag = problem.limits.interrupted] { return flag.is_set(); }};
}

}  // namespace hipress::planner
