#include "planner/evaluation.hpp"

#include "casync/strategy.hpp"

namespace hipress::planner {

double simulated_iteration_s(const models::Model& model, const casync::Plan& plan,
                             const Machines& machines) {
  const sim::TaskCosts costs(machines.profile, plan.algorithms);
  casync::Plan on_machines = plan;
  on_machines.gpus_per_node = machines.cluster.gpus_per_node;
  const sim::Result result = sim::simulate(casync::expand(model, on_machines), costs,
                                           machines.cluster, {.network = machines.network});
  return casync::to_seconds(result.iteration);
}

}  // namespace hipress::planner
