
#include <algorithm>
#include <string>
#include <vector>

#include "costs/description.hpp"
#include "planner/baselines/named_plans.hpp"
#include "requests/estimates.hpp"
#include "requests/simulate.hpp"

namespace hipress::requests {

using namespace sim;

namespace {

void warn_of_unused(const Scenario& scenario, const Prediction& prediction,
                    const SimulateRequest& line, const Hooks& hooks) {
  Given given = line.given;
  given.plan = line.plan;
  given.plan_options = line.plan_options;
  // The plan has been read: what it brings was found trusted then.
  given.trust = {.named = {line.algorithm}, .everything = line.trust.everything};
  given.replicas = line.replicas;
  given.profile = !line.machines.profile.empty();
  const std::vector<planner::NamedPlanRow> rows = planner::named_plan_rows();
  const auto made = std::ranges::find(rows, line.plan, &planner::NamedPlanRow::name);
  const bool is_soon_made = planner::kind_of_named_plan(line.plan) == planner::JobKind::kSharding;
  if (made != rows.end() && made->depends_on_machines && !is_soon_made) {
    // Another plan would have to be searched, which is not worth a warning.
    given.topology = false;
    given.algorithm.reset();
    given.plan_options = {};
  }
  const bool at_given_levels = load_machines(line).cluster.nodes == scenario.cluster.nodes;
  if (at_given_levels) given.cluster = line.machines.cluster;
  for (const std::string& sentence :
       without_effect(scenario, prediction.graph, prediction.result, given)) {
    warn(hooks, sentence);
  }
}

void warn_of_estimates(const Scenario& scenario, const Prediction& prediction, const Hooks& hooks) {
  for (const casync::Algorithm& algorithm : scenario.plan.algorithms) {
    const std::string diagnostic = costs::foreign_costs(scenario.profile, algorithm.name);
    if (!diagnostic.empty()) warn(hooks, diagnostic);
  }
  for (const std::string& estimate : estimates_of(prediction.graph, scenario.profile)) {
    warn(hooks, estimate);
  }
}

}  // namespace

void warn_of(const SimulateRequest& request, const Simulated& simulated, const Hooks& hooks) {
  warn_of_estimates(simulated.scenario, simulated.prediction, hooks);
  warn_of_unused(simulated.scenario, simulated.prediction, request, hooks);
  if (!request.wrap.empty() && simulated.scenario.plan.schedule == casync::Schedule()) {
    warn(hooks, "`wrap` has no effect: schedule ddp has no layers");
  }
}

}  // namespace hipress::requests
