
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "casync/layout.hpp"
#include "casync/topology.hpp"
#include "costs/assumed_spread.hpp"
#include "costs/description.hpp"
#include "costs/spread.hpp"
#include "io/error.hpp"
#include "io/memory.hpp"
#include "io/processors.hpp"
#include "requests/simulate.hpp"
#include "sim/critical_path.hpp"
#include "sim/graph_size.hpp"

namespace hipress::requests {

using namespace sim;

namespace {

unsigned jobs_of(const SimulateRequest& line) {
  return line.jobs > 0 ? line.jobs : static_cast<unsigned>(io::usable_cores().size());
}

/// Advice on how to make the scenario's graph smaller.
std::string smaller(const Scenario& scenario, casync::Folding folding,
                    const SimulateRequest& line) {
  using casync::Foldability;
  std::string text = "give ";
  const Foldability verdict = foldability(scenario);
  if (folding == casync::Folding::kNone && verdict.kind != Foldability::kImpossible) {
    if (!line.trace.empty()) text += "no `trace`, which shows every node, ";
    if (!line.chakra.empty()) text += "no `export_chakra`, which has every node, ";
    text += verdict.kind == Foldability::kExact
                ? "`fold` auto (all nodes do the same: one is simulated), "
                : "`fold` always (one node is simulated for all, with bounds), ";
  }
  if (scenario.iterations > 2) text += "fewer iterations to `steady`, ";
  if (line.replicas > 1) text += "fewer `jobs`, ";
  if (scenario.plan.bulk.threshold_bytes == 0) {
    text += "`bulk_threshold` 1MiB (small gradients together), ";
  }
  return text + "fewer nodes (`nnodes`), or fewer partitions K per gradient (a plan file)";
}

void expand(const Scenario& scenario, const SimulateRequest& line, Prediction& prediction) {
  Fold fold = parse_fold(line.fold);
  for (const auto& [option, given] : {std::pair("`trace`", !line.trace.empty()),
                                      std::pair("`export_chakra`", !line.chakra.empty())}) {
    if (!given) continue;
    if (line.fold == "always") {
      throw io::InputError(fmt::format(
          "{} shows every node, `fold` always only one: leave one of them out", option));
    }
    fold = Fold::kNever;
  }
  FoldingChoice choice = choose_folding(scenario, fold);
  const Beside beside = {.replicas = std::min(jobs_of(line), std::max(line.replicas, kStressed)),
                         .changed_graph = line.sensitivity};
  require_room(graph_size(scenario, choice.folding, beside), io::available_memory(),
               smaller(scenario, choice.folding, line));
  prediction.graph = expand(scenario, choice.folding);
  if (!choice.exact) prediction.folding_bounds = folding_bounds(scenario);
  prediction.why_whole = std::move(choice.why_whole);
}

}  // namespace

Intervals intervals_of(const Scenario& scenario, const Prediction& prediction) {
  const costs::Spread spread = costs::spread_of(scenario.profile);
  const double iteration_s = casync::to_seconds(prediction.iteration);
  const double compute_s = casync::to_seconds(compute_time(prediction));
  const double forward_s = iteration_s - casync::to_seconds(synchronisation_time(prediction));
  const Response& all = prediction.response;
  return {interval(all, spread), interval(without_compute(all, forward_s), spread),
          interval({.time_s = compute_s, .floor_s = compute_s}, spread),
          interval(without_compute(all, compute_s), spread)};
}

ComputeUtilisation compute_utilisation(const Scenario& scenario, const Prediction& prediction) {
  return sim::compute_utilisation(prediction.response, casync::to_seconds(compute_time(prediction)),
                                  costs::spread_of(scenario.profile));
}

std::vector<std::int64_t> bytes_per_iteration(const Scenario& scenario,
                                              const Prediction& prediction) {
  std::vector<std::int64_t> bytes = prediction.result.bytes_sent;
  const std::int64_t steps = std::int64_t{scenario.iterations} * prediction.steps;
  for (std::int64_t& of_node : bytes) of_node /= steps;
  return bytes;
}

Slowdown slowdown_of_step(const Scenario& scenario, const Prediction& prediction) {
  Slowdown slowdown = prediction.slowdowns.of_nodes[prediction.slowdowns.slowest()];
  const std::int64_t steps = std::int64_t{scenario.iterations} * prediction.steps;
  for (Picoseconds* const time :
       {&slowdown.by_codecs, &slowdown.by_transfers, &slowdown.by_computation}) {
    *time /= steps;
  }
  return slowdown;
}

Prediction predict(const Scenario& scenario, const SimulateRequest& line, const Hooks& hooks) {
  look_for_interrupt(hooks);
  Prediction prediction;
  expand(scenario, line, prediction);
  if (!line.machines.names_profile()) {
    prediction.default_profile = costs::describe_origin(scenario.profile, false);
  }
  prediction.names = casync::unit_names(casync::make_layout(scenario.model, scenario.plan));
  look_for_interrupt(hooks);
  const auto start = std::chrono::steady_clock::now();
  prediction.result = simulate(scenario, prediction.graph, Timelines::kRecorded);
  prediction.simulation_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  prediction.steps = steps_per_period(scenario);
  prediction.iteration = prediction.result.iteration / prediction.steps;
  if (scenario.iterations > 1) {
    prediction.steady =
        steady_state(prediction.graph, prediction.result.timeline, scenario.iterations);
    prediction.iteration = prediction.steady->period / prediction.steps;
  }
  look_for_interrupt(hooks);
  prediction.response =
      respond(scenario, prediction.graph, casync::to_seconds(prediction.iteration),
              casync::to_seconds(compute_time(prediction)), jobs_of(line));
  prediction.critical_path = critical_path(prediction.graph, prediction.result.timeline);
  prediction.utilisation = utilisation(scenario, prediction.graph, prediction.result);
  prediction.slowdowns = slowdowns(scenario, prediction.graph, prediction.result);
  prediction.result.timeline.slowed = prediction.slowdowns.of_tasks;
  prediction.traffic = traffic(scenario, prediction.graph, prediction.result, prediction.iteration,
                               compute_time(prediction));
  look_for_interrupt(hooks);
  if (line.replicas > 1) {
    prediction.replicas = run_replicas(scenario, prediction.graph, line.replicas, jobs_of(line));
  }
  prediction.explains_interval = line.explains_interval;
  look_for_interrupt(hooks);
  if (line.sensitivity) {
    prediction.sensitivities = sensitivities(scenario, prediction.graph, prediction.iteration);
  }
  return prediction;
}

}  // namespace hipress::requests
