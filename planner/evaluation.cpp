#include "planner/evaluation.hpp"

#include "casync/strategy.hpp"

namespace hipress::planner {

double simulated_iteration_s(const models::Model& model, const casync::Plan& plan,
                             const Machines& machines) {
  const sim::TaskCosts costs(machines.profile, plan.algorithms);
  const sim::Result result = sim::simulate(casync::expand(model, plan), costs, machines.cluster,
                                           {.network = machines.network});
  return casync::to_seconds(result.iteration);
}

}  // namespace hipress::planner
