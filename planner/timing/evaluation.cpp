#include "planner/timing/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "casync/folding.hpp"
#include "costs/levels.hpp"
#include "planner/problem/problem.hpp"
#include "planner/timing/evaluator.hpp"
#include "sim/compute_utilisation.hpp"
#include "sim/folding.hpp"
#include "sim/graph_size.hpp"

namespace hipress::planner {
namespace {

constexpr double kMaxTasks = 8e6;  // largest graph; expansion takes about 90 bytes per task
// Largest graph if whole_graphs_are_too_large().
constexpr double kMaxTasksBesideFolded = 2e6;
constexpr double kMaxFlowTasks = 1e8;    // largest graph with flows that share links
constexpr double kMaxFoldedTasks = 1e8;  // largest graph of one node, if it stands for all

double fitting_tasks(const Machines& machines) {
  return machines.memory_bytes / (sim::bytes_of_graph(1) + sim::bytes_of_simulation(1));
}

double most_tasks(const models::Model& model, const casync::Plan& plan, const Machines& machines) {
  return std::min(whole_graphs_are_too_large(model, plan.nodes) ? kMaxTasksBesideFolded : kMaxTasks,
                  fitting_tasks(machines));
}

sim::Scenario scenario_for(const models::Model& model, const casync::Plan& plan,
                           const Machines& machines, sim::TransferOrder order) {
  sim::Scenario scenario = {.model = model,
                            .plan = plan,
                            .profile = machines.profile,
                            .cluster = seen_by(machines.network, machines.cluster),
                            .network = machines.network,
                            .iterations = sim::iterations_to_settle(plan),
                            .transfer_order = order,
                            .stop = stop_of(machines)};
  scenario.plan.gpus_per_node = machines.cluster.gpus_per_node;
  if (plan.rails == 1) scenario.plan.rails = costs::rails(machines.cluster);
  return scenario;
}

bool averages(const casync::Plan& plan) { return kind_of(plan.schedule) == JobKind::kAveraging; }

/// Way of simulating a graph, by its number of tasks.
struct Treatment {
  sim::Network network = sim::Network::kFair;
  sim::Fold fold = sim::Fold::kExactly;
  bool folds = false;
  bool possible = true;
  std::string diagnostic = {};
};

/// Chooses how to simulate a graph. With few tasks it is simulated as it is, or folded if that
/// changes nothing. With many tasks, one node is simulated for all. Network port replaces `fair` if
/// `fair` cannot fold the graph or would have too many flows.
Treatment treatment_of(const models::Model& model, const casync::Plan& plan,
                       const Machines& machines, double tasks) {
  using casync::Foldability;
  Treatment treatment = {.network = machines.network};
  const Foldability verdict = casync::foldable(model, plan);
  const auto why_whole = [&] {
    return verdict.kind == Foldability::kImpossible
               ? verdict.why
               : sim::difference_between_nodes(seen_by(treatment.network, machines.cluster));
  };
  if (tasks <= most_tasks(model, plan, machines)) {
    treatment.folds = plan.nodes > 1 && verdict.kind == Foldability::kExact && why_whole().empty();
    return treatment;
  }
  std::string on_port;
  if (machines.network == sim::Network::kFair) {
    if (machines.cluster.link.burst_bytes > 0) on_port = "fair cannot fold links with bursts";
    if (tasks > kMaxFlowTasks) on_port = "there are too many flows for fair";
  }
  if (!on_port.empty()) treatment.network = sim::Network::kPort;
  if (const std::string why = why_whole(); !why.empty()) {
    // A graph that cannot be folded is simulated whole up to kMaxTasks, beyond most_tasks().
    if (tasks <= std::min(kMaxTasks, fitting_tasks(machines))) return {machines.network};
    treatment.possible = false;
    treatment.diagnostic =
        fmt::format("not simulated: about {:.0e} tasks, and nodes differ ({})", tasks, why);
    return treatment;
  }
  const double folded = tasks / plan.nodes;
  if (folded > std::min(kMaxFoldedTasks, fitting_tasks(machines))) {
    treatment.possible = false;
    treatment.diagnostic = fmt::format(
        "not simulated: one node alone has about {:.0e} tasks, {}", folded,
        folded > kMaxFoldedTasks ? "which takes too long" : "which do not fit in memory");
    return treatment;
  }
  treatment.fold = sim::Fold::kAlways;
  treatment.folds = true;
  std::string& diagnostic = treatment.diagnostic;
  if (verdict.kind == Foldability::kBounded) {
    diagnostic = "simulated with all slices as long as the longest";
  }
  if (!on_port.empty()) {
    diagnostic += (diagnostic.empty() ? "simulated" : ",") + (" on network port: " + on_port);
  }
  return treatment;
}

double seconds_of(const sim::Scenario& scenario, sim::Fold fold, SharedGraph* shared = nullptr) {
  if (shared) return casync::to_seconds(sim::iteration_time(scenario, shared->of(scenario, fold)));
  return casync::to_seconds(sim::iteration_time(scenario, sim::expand(scenario, fold).graph));
}

/// The machines at the level of GPUs at which they have as many nodes as the plan.
class AtPlansLevel {
 public:
  AtPlansLevel(const Machines& machines, const casync::Plan& plan) : machines_(machines) {
    if (plan.nodes == machines.cluster.nodes) return;
    other_.emplace(at_level(machines, costs::with_nodes(machines.cluster, plan.nodes)));
  }
  const Machines& operator*() const { return other_ ? *other_ : machines_; }

 private:
  const Machines& machines_;
  std::optional<Machines> other_;
};

}  // namespace

const casync::TaskGraph& SharedGraph::of(const sim::Scenario& scenario, sim::Fold fold) {
  std::call_once(once_, [&] { expanded_ = sim::expand(scenario, fold); });
  return expanded_->graph;
}

double simulated_tasks(const models::Model& model, const casync::Plan& plan,
                       const Machines& machines) {
  if (!averages(plan)) return affordable_scenario(model, plan, machines).tasks;
  const AtPlansLevel level(machines, plan);
  const double tasks = casync::whole_tasks(model, plan);
  const Treatment treatment = treatment_of(model, plan, *level, tasks);
  return treatment.folds ? tasks / plan.nodes : tasks;
}

double simulated_iteration_s(const models::Model& model, const casync::Plan& plan,
                             const Machines& machines, sim::TransferOrder order) {
  const AtPlansLevel level(machines, plan);
  return seconds_of(scenario_for(model, plan, *level, order), sim::Fold::kExactly);
}

AffordableScenario affordable_scenario(const models::Model& model, const casync::Plan& plan,
                                       const Machines& given, sim::TransferOrder order) {
  const AtPlansLevel level(given, plan);
  const Machines& machines = *level;
  AffordableScenario how = {.scenario = scenario_for(model, plan, machines, order)};
  if (!averages(plan)) {
    const casync::Folding folding = sim::choose_folding(how.scenario, sim::Fold::kExactly).folding;
    how.folds = folding == casync::Folding::kFolded;
    how.tasks = sim::graph_size(how.scenario, folding).tasks;
    how.possible = how.tasks <= std::min(kMaxTasks, fitting_tasks(machines));
    if (!how.possible) {
      how.diagnostic = fmt::format("not simulated: about {:.0e} tasks", how.tasks);
    }
    return how;
  }
  const double tasks = casync::whole_tasks(model, plan);
  Treatment treatment = treatment_of(model, plan, machines, tasks);
  how.folds = treatment.folds;
  how.tasks = treatment.folds ? tasks / plan.nodes : tasks;
  how.fold = treatment.fold;
  how.possible = treatment.possible;
  how.diagnostic = std::move(treatment.diagnostic);
  if (how.scenario.network != treatment.network) {
    how.scenario.network = treatment.network;
    how.scenario.cluster = seen_by(treatment.network, machines.cluster);
  }
  return how;
}

AffordableTime affordable_iteration(const models::Model& model, const casync::Plan& plan,
                                    const Machines& given, sim::TransferOrder order,
                                    SharedGraph* graph) {
  const AtPlansLevel level(given, plan);
  const Machines& machines = *level;
  const AffordableScenario how = affordable_scenario(model, plan, machines, order);
  if (!how.possible) return {std::nullopt, how.diagnostic};
  const bool on_port = how.scenario.network == sim::Network::kPort;
  const bool from_patterns = averages(plan) && how.fold == sim::Fold::kAlways && on_port &&
                             nodes_are_alike(machines.cluster) && plan.bulk_groups.empty() &&
                             plan.batch.threshold_bytes == 0 && plan.pipelining;
  const auto simulate = [&] {
    return from_patterns ? casync::to_seconds(
                               casync::Picoseconds(folded_iteration(model, plan, machines, order)))
                         : seconds_of(how.scenario, how.fold, graph);
  };
  if (!machines.budget) return {simulate(), how.diagnostic};
  const SimulationKind engine = from_patterns ? SimulationKind::kPatterns
                                : on_port     ? SimulationKind::kPort
                                : how.folds   ? SimulationKind::kFairFolded
                                              : SimulationKind::kFair;
  if (const std::string why = machines.budget->objection(how.tasks, engine); !why.empty()) {
    return {std::nullopt, fmt::format("not simulated: about {:.0e} tasks, {}", how.tasks, why)};
  }
  const auto start = std::chrono::steady_clock::now();
  try {
    const double iteration_s = simulate();
    machines.budget->note(
        how.tasks, engine,
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    return {iteration_s, how.diagnostic};
  } catch (const sim::Stopped&) {
    return {std::nullopt,
            fmt::format("not simulated to the end: about {:.0e} tasks, {}", how.tasks,
                        machines.budget->interrupted() ? "interrupted" : "which took too long")};
  }
}

}  // namespace hipress::planner
