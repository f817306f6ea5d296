#include "planner/timing/forecast.hpp"

#include <algorithm>

#include "costs/assumed_spread.hpp"

namespace hipress::planner {

std::optional<sim::Response> forecast(const models::Model& model, const casync::Plan& plan,
                                      sim::TransferOrder order, std::optional<double> iteration_s,
                                      const Machines& machines, unsigned jobs) {
  if (!iteration_s) return std::nullopt;
  const std::vector<double>& speeds = machines.cluster.compute_speed;
  const double slowest = speeds.empty() ? 1 : *std::min_element(speeds.begin(), speeds.end());
  const double compute_s = (models::before_backward_s(model) + models::backward_s(model)) / slowest;
  SharedGraph graph;
  const sim::TimeOf time_s = [&](const costs::Profile& profile, const costs::Cluster& cluster) {
    const Machines changed = {profile, cluster, machines.network, machines.memory_bytes,
                              machines.budget};
    return affordable_iteration(model, plan, changed, order, &graph).iteration_s;
  };
  return sim::respond(*iteration_s, compute_s, machines.profile, machines.cluster, time_s, jobs);
}

std::optional<double> upper_end_s(const Problem& problem, const TimedPlan& plan) {
  const std::optional<sim::Response> response =
      forecast(problem.model, plan.plan, plan.transfer_order, plan.iteration_s, *problem.machines);
  if (!response) return std::nullopt;
  return sim::interval(*response, costs::spread_of(problem.machines->profile)).p90_s;
}

}  // namespace hipress::planner
