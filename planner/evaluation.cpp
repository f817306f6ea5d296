#include "planner/evaluation.hpp"

#include <fmt/format.h>

#include "casync/layout.hpp"
#include "casync/strategy.hpp"
#include "planner/evaluator.hpp"
#include "sim/folding.hpp"

namespace hipress::planner {
namespace {

constexpr double kMostTasks = 8e6;      // of a graph: about 500 MB
constexpr double kMostFlowTasks = 1e8;  // of the whole graph, where flows share links
constexpr double kTasksPerMessage = 3.5;

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

double whole_tasks(const models::Model& model, const casync::Plan& plan) {
  const casync::Layout layout = casync::make_layout(model, plan);
  double messages = 0;
  for (const std::uint32_t index : layout.order) {
    const casync::Unit& unit = layout.units[index];
    const std::int64_t slice = casync::slice(unit.elements, unit.partitions, 0).elements;
    messages += 2.0 * (plan.nodes - 1) * static_cast<double>((unit.elements + slice - 1) / slice);
  }
  return messages * kTasksPerMessage;
}

double simulated_tasks(const models::Model& model, const casync::Plan& plan,
                       const Machines& machines) {
  const double tasks = whole_tasks(model, plan);
  if (!nodes_are_alike(machines.cluster)) return tasks;
  const casync::Foldability::Kind kind = casync::foldable(model, plan).kind;
  const bool folds = kind == casync::Foldability::kExact ||
                     (kind == casync::Foldability::kBounded && tasks > kMostTasks);
  return folds ? tasks / plan.nodes : tasks;
}

double simulated_iteration_s(const models::Model& model, const casync::Plan& plan,
                             const Machines& machines, sim::TransferOrder order) {
  return seconds_of(scenario_for(model, plan, machines, order), sim::Fold::kExactly);
}

AffordableScenario affordable_scenario(const models::Model& model, const casync::Plan& plan,
                                       const Machines& machines, sim::TransferOrder order) {
  AffordableScenario how = {.scenario = scenario_for(model, plan, machines, order)};
  const double tasks = whole_tasks(model, plan);
  if (tasks <= kMostTasks) return how;
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
  const bool from_patterns =
      how.fold == sim::Fold::kAlways && how.scenario.network == sim::Network::kPort &&
      plan.raw_strategy.empty() && plan.batch.threshold_bytes == 0 && plan.pipelining;
  return {from_patterns ? casync::to_seconds(
                              casync::Picoseconds(folded_iteration(model, plan, machines, order)))
                        : seconds_of(how.scenario, how.fold),
          how.remark};
}

}  // namespace hipress::planner
