#include "planner/evaluation.hpp"

#include <fmt/format.h>

#include "casync/folding.hpp"
#include "planner/evaluator.hpp"
#include "sim/folding.hpp"

namespace hipress::planner {
namespace {

constexpr double kMostWholeTasks = 4e6;  // with K = N, that are worth simulating again and again
constexpr double kMostTasks = 8e6;       // of a graph; about 90 bytes each while it is made
constexpr double kMostTasksBesideFolded = 2e6;  // the same where other plans' are folded anyway
constexpr double kMostFlowTasks = 1e8;          // of the whole graph, where flows share links
constexpr double kTasksPerMessage = 3.5;

double most_tasks(const models::Model& model, const casync::Plan& plan) {
  return whole_graphs_are_too_large(model, plan.nodes) ? kMostTasksBesideFolded : kMostTasks;
}

sim::Scenario scenario_for(const models::Model& model, const casync::Plan& plan,
                           const Machines& machines, sim::TransferOrder order) {
  sim::Scenario scenario = {.model = model,
                            .plan = plan,
                            .profile = machines.profile,
                            .cluster = machines.cluster,
                            .network = machines.network,
                            .transfer_order = order};
  scenario.plan.gpus_per_node = machines.cluster.gpus_per_node;
  return scenario;
}

double seconds_of(const sim::Scenario& scenario, sim::Fold fold) {
  return casync::to_seconds(sim::iteration_time(scenario, sim::expand(scenario, fold).graph));
}

}  // namespace

bool whole_graphs_are_too_large(const models::Model& model, std::uint32_t nodes) {
  const double n = nodes;
  const double messages = 2 * n * (n - 1) * static_cast<double>(model.gradients.size());
  return messages * kTasksPerMessage > kMostWholeTasks;
}

double simulated_tasks(const models::Model& model, const casync::Plan& plan,
                       const Machines& machines) {
  const double tasks = casync::whole_tasks(model, plan);
  if (!nodes_are_alike(machines.cluster)) return tasks;
  const casync::Foldability::Kind kind = casync::foldable(model, plan).kind;
  const bool folds = kind == casync::Foldability::kExact ||
                     (kind == casync::Foldability::kBounded && tasks > most_tasks(model, plan));
  return folds ? tasks / plan.nodes : tasks;
}

double simulated_iteration_s(const models::Model& model, const casync::Plan& plan,
                             const Machines& machines, sim::TransferOrder order) {
  return seconds_of(scenario_for(model, plan, machines, order), sim::Fold::kExactly);
}

AffordableScenario affordable_scenario(const models::Model& model, const casync::Plan& plan,
                                       const Machines& machines, sim::TransferOrder order) {
  AffordableScenario how = {.scenario = scenario_for(model, plan, machines, order)};
  const double tasks = casync::whole_tasks(model, plan);
  if (tasks <= most_tasks(model, plan)) return how;
  const casync::Foldability verdict = casync::foldable(model, plan);
  if (verdict.kind == casync::Foldability::kImpossible || !nodes_are_alike(machines.cluster)) {
    how.possible = false;
    how.remark = fmt::format("not simulated: about {:.0e} tasks, and nodes differ ({})", tasks,
                             verdict.why.empty() ? "machines" : verdict.why);
    return how;
  }
  how.fold = sim::Fold::kAlways;
  if (verdict.kind == casync::Foldability::kBounded) {
    how.remark = "simulated with all slices as long as the longest";
  }
  if (how.scenario.network == sim::Network::kFair && tasks > kMostFlowTasks) {
    how.scenario.network = sim::Network::kPort;
    how.remark += how.remark.empty() ? "simulated" : ",";
    how.remark += " on network port: there are too many flows for fair";
  }
  return how;
}

AffordableTime affordable_iteration(const models::Model& model, const casync::Plan& plan,
                                    const Machines& machines, sim::TransferOrder order) {
  const AffordableScenario how = affordable_scenario(model, plan, machines, order);
  if (!how.possible) return {std::nullopt, how.remark};
  const bool from_patterns = how.fold == sim::Fold::kAlways &&
                             how.scenario.network == sim::Network::kPort &&
                             plan.batch.threshold_bytes == 0 && plan.pipelining;
  return {from_patterns ? casync::to_seconds(
                              casync::Picoseconds(folded_iteration(model, plan, machines, order)))
                        : seconds_of(how.scenario, how.fold),
          how.remark};
}

}  // namespace hipress::planner
