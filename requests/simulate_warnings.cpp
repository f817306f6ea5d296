
#include <string>

#include "costs/description.hpp"
#include "requests/effect.hpp"
#include "requests/estimates.hpp"

namespace hipress::requests {

using namespace sim;

namespace {

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
  for (const std::string& sentence : without_effect(
           request, simulated.scenario, simulated.prediction.graph, simulated.prediction.result)) {
    warn(hooks, sentence);
  }
}

}  // namespace hipress::requests
