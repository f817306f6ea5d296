
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "casync/topology.hpp"
#include "costs/description.hpp"
#include "costs/levels.hpp"
#include "io/error.hpp"
#include "io/yaml.hpp"
#include "models/wrap.hpp"
#include "planner/advice/settings.hpp"
#include "planner/baselines/named_plans.hpp"
#include "planner/search/shards.hpp"
#include "plans/broadcast.hpp"
#include "plans/plan_file.hpp"
#include "requests/shared_fields.hpp"
#include "requests/simulate.hpp"
#include "sim/compute_utilisation.hpp"

namespace hipress::requests {

using namespace sim;

namespace {

constexpr std::string_view kAnyTopology = "best";

/// Number of nodes: the request's, else the cluster file's, else the plan YAML's. 0 if it is left
/// to the cluster file, or unknown.
std::uint32_t nodes_of(const SimulateRequest& line) {
  if (line.nodes > 0) return line.nodes;
  const std::string& file = line.machines.cluster;
  const bool file_says = !file.empty() && costs::nodes_of_cluster(file).has_value();
  return file_says ? 0 : plans::nodes_of_plan(line.plan).value_or(0);
}

void say(const Hooks& hooks, const std::vector<std::string>& diagnostics) {
  for (const std::string& diagnostic : diagnostics) inform(hooks, diagnostic);
}

/// True if `topology` is BEST: the plan chooses its topology (named plan) or has one (plan YAML).
bool leaves_topology_open(const SimulateRequest& line) {
  if (line.topology != kAnyTopology && line.topology != "BEST") return false;
  if (planner::is_named_plan(line.plan) || plans::topology_of_plan(line.plan)) return true;
  throw io::InputError(
      fmt::format("`topology` BEST needs a plan that is made for the machines ({}), and plan {} is "
                  "not: give its topology, {}",
                  planner::named_plans(), io::quote(line.plan),
                  casync::topology_names(casync::Operation::kMean)));
}

std::string topology_of(const SimulateRequest& line) {
  if (leaves_topology_open(line)) {
    return plans::topology_of_plan(line.plan).value_or(std::string(kAnyTopology));
  }
  const std::string asked(casync::find_topology(line.topology).name);
  return line.given.contains("topology") ? asked
                                         : plans::topology_of_plan(line.plan).value_or(asked);
}

/// Returns the cluster as given or, if only that has `nodes` nodes, at its other level: each GPU of
/// a machine a node, or all of them one node (costs/levels.hpp).
costs::Cluster at_level_of(const costs::Cluster& cluster, std::uint32_t nodes, const Hooks& hooks) {
  costs::Cluster found = costs::with_nodes(cluster, nodes);
  if (found.nodes != cluster.nodes) inform(hooks, costs::describe_levels(found));
  return found;
}

/// True if the job is sharded. Called before the model is read, since its times depend on this.
bool is_sharded(const SimulateRequest& line) {
  if (planner::kind_of_named_plan(line.plan) == planner::JobKind::kSharding) return true;
  if (line.schedule.empty()) return false;
  try {
    return planner::kind_of(casync::Schedule::parse(line.schedule)) == planner::JobKind::kSharding;
  } catch (const std::invalid_argument&) {
    return false;  // read_schedule() reports the error
  }
}

}  // namespace

costs::LoadedMachines load_machines(const SimulateRequest& line) {
  constexpr std::uint32_t kDefaultNodes = 16;
  return costs::load(line.machines, nodes_of(line), kDefaultNodes);
}

Scenario load_scenario(const SimulateRequest& line, const Hooks& hooks) {
  const Network network = parse_network(line.network);
  const std::string topology = topology_of(line);
  std::vector<std::string> assumed;
  models::TimeOptions times = line.times;
  times.rates = costs::rates_of(line.machines, line.nodes, is_sharded(line));
  models::Model model = plans::read_input(line.input, line.plan, topology, times, assumed);
  if (!line.wrap.empty()) models::wrap(line.wrap, model);
  say(hooks, assumed);
  costs::LoadedMachines machines = load_machines(line);
  say(hooks, machines.diagnostics);
  for (const std::string& warning : machines.warnings) warn(hooks, warning);
  const std::optional<std::uint32_t> planned = plans::nodes_of_plan(line.plan);
  using planner::JobKind;
  const bool sharded = planner::kind_of_named_plan(line.plan) == JobKind::kSharding ||
                       (!line.schedule.empty() && planner::kind_of(read_schedule(
                                                      line.schedule, model)) == JobKind::kSharding);
  if (sharded && planner::is_searched(line.plan)) {
    throw io::InputError(fmt::format(
        "plan {} is searched for gradients that are averaged in every step, and schedule {} does "
        "not average in every step: write one with hipress-plan `schedule`, and give `plan` X.yaml",
        line.plan, line.schedule));
  }
  costs::Cluster cluster = machines.cluster;
  if (sharded && cluster.gpus_per_node > 1) {
    cluster = costs::of_gpus(cluster);
    inform(hooks, costs::describe_levels(cluster));
  }
  cluster = at_level_of(cluster, planned.value_or(cluster.nodes), hooks);
  const plans::PlanContext context = {.model = model,
                                      .topology = topology,
                                      .nodes = cluster.nodes,
                                      .algorithm = line.algorithm,
                                      .trust = line.trust};
  plans::ResolvedPlan resolved = planner::resolve_plan(
      line.plan, context, {.profile = machines.profile, .cluster = cluster, .network = network},
      line.evaluations);
  plans::apply(line.plan_options, context, resolved);
  casync::Plan plan = std::move(resolved.plan);
  if (plan.nodes != cluster.nodes) cluster = at_level_of(cluster, plan.nodes, hooks);
  plan.gpus_per_node = cluster.gpus_per_node;
  if (plan.rails == 1) plan.rails = costs::rails(cluster);
  Scenario scenario{std::move(model), std::move(plan), std::move(machines.profile),
                    std::move(cluster), network};
  if (!line.schedule.empty()) {
    scenario.plan.schedule = read_schedule(line.schedule, scenario.model);
  }
  // Times that are derived from a batch include the time that DDP itself takes for its default
  // buckets. If the plan has other buckets, the difference is charged here.
  const bool by_arithmetic = line.times.batch > 0 && line.times.per_gradient.empty();
  if (by_arithmetic && !sharded && planner::sends_raw_alone(scenario.plan.topology)) {
    planner::charge_buckets(scenario.plan, scenario.model);
  }
  plans::require_shards(line.plan_options, scenario.plan.schedule);
  if (!io::is_yaml_name(line.plan)) {
    const std::string why =
        planner::exchange_within_hosts(scenario.model, scenario.cluster, scenario.plan);
    if (!why.empty()) inform(hooks, why);
  }
  const int least = steps_per_period(scenario) > 1 ? kPeriods : 1;
  scenario.iterations = line.steady > 0 ? line.steady : least;
  scenario.transfer_order = parse_transfer_order(line.transfer_order);
  if (!line.given.contains("transfer_order") && resolved.transfer_order) {
    scenario.transfer_order = *resolved.transfer_order;
  }
  scenario.draws.seed = line.seed;
  if (!line.jitter.empty()) {
    scenario.jitter = std::make_shared<const Jitter>(Jitter::parse(line.jitter));
  }
  return scenario;
}

}  // namespace hipress::requests
