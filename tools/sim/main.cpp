// hipress-sim: predicts one iteration of a plan; `hipress-sim sweep` many.

#include <algorithm>
#include <iostream>
#include <string_view>
#include <utility>

#include "io/error.hpp"
#include "io/file.hpp"
#include "plans/plan_file.hpp"
#include "tools/frame.hpp"
#include "tools/sim/chakra_command.hpp"
#include "tools/sim/load.hpp"
#include "tools/sim/predict.hpp"
#include "tools/sim/sweep_command.hpp"
#include "tools/sim/warnings.hpp"
#include "traces/chakra_graph.hpp"
#include "traces/timeline.hpp"

namespace {

using namespace hipress;
using sim::CommandLine;

void write_trace(const CommandLine& line, const sim::Scenario& scenario,
                 const sim::Prediction& prediction) {
  io::write_file(line.trace, [&](std::ostream& out) {
    traces::write_chrome_trace(
        out, prediction.graph, prediction.names, {&prediction.result.timeline},
        {.model = scenario.model.name, .plan = plans::title(line.plan, scenario.plan)});
  });
}

/// What is exported is simulated again from its tasks, which know neither draws nor iterations.
void check_export(const CommandLine& line) {
  if (line.chakra.empty()) return;
  if (!line.jitter.empty() || line.steady > 0) {
    throw io::InputError(
        "--export-chakra has one iteration at nominal times: leave out --jitter and --steady");
  }
}

void export_chakra(const CommandLine& line, const sim::Scenario& scenario,
                   sim::Prediction& prediction) {
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

int run(const CommandLine& line) {
  if (line.replicas > 1 && line.jitter.empty()) {
    throw io::InputError("--replicas: without --jitter all would be the same; give one of them");
  }
  check_export(line);
  if (!line.trace.empty()) io::require_writable(line.trace);
  const sim::Scenario scenario = sim::load_scenario(line);
  if (!line.trace.empty()) io::refuse_input(line.trace);
  sim::Prediction prediction = predict(scenario, line);
  if (line.json) {
    sim::print_json(std::cout, scenario, prediction);
  } else {
    sim::print_report(std::cout, scenario, prediction);
  }
  // Last, so that a full disk costs nothing but the trace.
  if (!line.trace.empty()) write_trace(line, scenario, prediction);
  if (!line.chakra.empty()) export_chakra(line, scenario, prediction);
  warn_of_estimates(scenario, prediction);
  warn_of_unused(scenario, prediction, line);
  return 0;
}

int run_single(int argc, char** argv) {
  CommandLine line;
  const tools::ToolInfo info = {
      .name = "hipress-sim",
      .purpose =
          "Predicts one iteration of a plan: when every gradient is synchronised, and what that "
          "waits for.\nMany at once, to CSV: hipress-sim sweep SPEC.yaml --output FILE.csv (see "
          "hipress-sim sweep --help).\nA graph that --export-chakra wrote: hipress-sim --chakra "
          "FOLDER (see hipress-sim --chakra FOLDER --help).",
      .example =
          "hipress-sim --input vgg19 --plan all --topology RING --nnodes 8 --algorithm onebit"};
  return tools::run_tool(
      argc, argv, info, [&](CLI::App& app) { sim::declare(app, line); }, [&] { return run(line); });
}

}  // namespace

int main(int argc, char** argv) {
  const bool sweeps = argc > 1 && argv[1] == std::string_view("sweep");
  const bool reads_graph = std::any_of(argv + std::min(argc, 1), argv + argc, [](const char* one) {
    return std::string_view(one) == "--chakra" || std::string_view(one).starts_with("--chakra=");
  });
  if (reads_graph && !sweeps) return sim::run_chakra_command(argc, argv);
  return sweeps ? sweep::run_sweep_command(argc - 1, argv + 1) : run_single(argc, argv);
}
