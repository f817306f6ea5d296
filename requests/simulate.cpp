#include "requests/simulate.hpp"

#include <fmt/format.h>

#include <utility>

#include "io/error.hpp"
#include "io/file.hpp"
#include "plans/plan_file.hpp"
#include "traces/chakra_graph.hpp"
#include "traces/timeline.hpp"

namespace hipress::requests {

using namespace sim;

namespace {

void write_trace(const SimulateRequest& line, const Scenario& scenario,
                 const Prediction& prediction) {
  io::write_file(line.trace, [&](std::ostream& out) {
    traces::write_chrome_trace(
        out, prediction.graph, prediction.names, {&prediction.result.timeline},
        {.model = scenario.model.name, .plan = plans::title(line.plan, scenario.plan)});
  });
}

/// Rejects exports with jitter or several iterations: exports are simulated again without them.
void check_export(const SimulateRequest& line) {
  if (line.chakra.empty()) return;
  if (!line.jitter.empty() || line.steady > 0) {
    throw io::InputError(
        "`export_chakra` writes one iteration at nominal times: leave out `jitter` and `steady`");
  }
}

void export_chakra(const SimulateRequest& line, const Scenario& scenario, Prediction& prediction) {
  traces::ChakraGraph what;
  what.names = prediction.names;
  for (const casync::Algorithm& algorithm : scenario.plan.algorithms) {
    what.algorithms.push_back(algorithm.name);
  }
  what.model = scenario.model.name;
  what.plan = plans::title(line.plan, scenario.plan);
  what.profile = scenario.profile.name;
  what.network = sim::to_string(scenario.network);
  what.transfer_order = casync::to_string(scenario.transfer_order);
  what.gpus_per_node = scenario.plan.gpus_per_node;
  what.iteration = prediction.iteration;
  what.timeline = prediction.result.timeline;
  what.graph = std::move(prediction.graph);
  traces::write_chakra_graph(line.chakra, what);
  prediction.graph = std::move(what.graph);
}

}  // namespace

Simulated simulate(const SimulateRequest& request, const Hooks& hooks) {
  if (request.replicas > 1 && request.jitter.empty()) {
    throw io::InputError("`replicas`: without `jitter` all would be the same; give one of them");
  }
  check_export(request);
  if (!request.trace.empty()) io::require_writable(request.trace);
  Scenario scenario = load_scenario(request, hooks);
  const bool averages = !scenario.plan.schedule.row().sharded;
  if (!request.chakra.empty() && (steps_per_period(scenario) > 1 || !averages)) {
    throw io::InputError(
        fmt::format("`export_chakra` writes one step in which gradients are averaged, and schedule "
                    "{} does not average in every step: take `schedule` ddp",
                    scenario.plan.schedule.text()));
  }
  if (hooks.interrupted.exists()) {
    scenario.stop = [flag = hooks.interrupted] { return flag.is_set(); };
  }
  if (!request.trace.empty()) io::refuse_input(request.trace);
  Prediction prediction = predict(scenario, request, hooks);
  return {std::move(scenario), std::move(prediction)};
}

void write_files(const SimulateRequest& request, Simulated& simulated) {
  if (!request.trace.empty()) write_trace(request, simulated.scenario, simulated.prediction);
  if (!request.chakra.empty()) export_chakra(request, simulated.scenario, simulated.prediction);
}

io::Document answer(const SimulateRequest& request, const Hooks& hooks) {
  try {
    Simulated simulated = simulate(request, hooks);
    write_files(request, simulated);
    warn_of(request, simulated, hooks);
    return document(simulated);
  } catch (const Stopped&) {
    throw Interrupted();
  }
}

}  // namespace hipress::requests
