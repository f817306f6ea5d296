#include "planner/timing/forecast.hpp"

#include <algorithm>

namespace hipress::planner {

std::optional<sim::Response> forecast(const models::Model& model, const casync::Plan& plan,
                                      sim::TransferOrder order, std::optional<double> iteration_s,
                                      const Machines& machines, unsigned jobs) {
  if (!iteration_s) return std::nullopt;
  const std::vector<double>& speeds = machines.cluster.compute_speed;
  const double slowest = speeds.empty() ? 1 : *std::min_element(speeds.begin(), speeds.end());
  const double compute_s = (models::before_backward_s(model) + models::backward_s(model)) / slowest;
  const sim::TimeOf time_s = [&](const costs::Profile& profile, const costs::Cluster& cluster) {
    Machines changed = {profile, cluster, machines.network};
    changed.memory_bytes = machines.memory_bytes;
    changed.budget = machines.budget;
    return affordable_iteration(model, plan, changed, order).iteration_s;
  };
  return sim::respond(*iteration_s, compute_s, machines.profile, machines.cluster, time_s, jobs);
}

}  // namespace hipress::planner
