#include "tools/sim/chakra_command.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <iostream>
#include <string>
#include <vector>

#include "costs/description.hpp"
#include "costs/machine_options.hpp"
#include "io/error.hpp"
#include "io/quantity.hpp"
#include "io/utf8.hpp"
#include "requests/headings.hpp"
#include "requests/shared_fields.hpp"
#include "requests/simulated_chakra.hpp"
#include "sim/simulator.hpp"
#include "tools/frame.hpp"
#include "tools/options/fields.hpp"
#include "tools/validators.hpp"
#include "traces/chakra_graph.hpp"

namespace hipress::sim {
namespace {

struct ChakraOptions {
  std::string folder;
  costs::MachineOptions machines;
  std::string network;         ///< empty: as exported
  std::string transfer_order;  ///< empty: as exported
  bool json = false;
};

void declare_options(CLI::App& app, ChakraOptions& options) {
  app.add_option("--chakra", options.folder, "Folder written by hipress-sim --export-chakra")
      ->required()
      ->check(tools::file_name())
      ->group(std::string(requests::headings::kJob));
  requests::Fields machines;
  requests::add(machines, options.machines,
                fmt::format("default: {}, published for V100s", costs::kDefaultProfile));
  tools::bind(app, machines);
  app.add_option("--network", options.network, "port or fair (default: as exported)")
      ->group(std::string(requests::headings::kMachines));
  app.add_option("--transfer-order", options.transfer_order, "ready or need (default: as exported)")
      ->group(std::string(requests::headings::kPlan));
  tools::declare_json(app, options.json);
}

costs::LoadedMachines load_machines(const ChakraOptions& options,
                                    const traces::ChakraGraph& exported) {
  costs::LoadedMachines machines =
      costs::load(options.machines, exported.graph.nodes, exported.graph.nodes);
  for (const std::string& diagnostic : machines.diagnostics) tools::inform(diagnostic);
  for (const std::string& warning : machines.warnings) tools::warn(warning);
  const costs::Cluster& cluster = machines.cluster;
  if (cluster.gpus_per_node != exported.gpus_per_node) {
    throw io::InputError(
        fmt::format("{}: the graph is for nodes of {} GPUs, the cluster's have {}: give the "
                    "cluster that it was exported for (--cluster, --gpus-per-node)",
                    options.folder, exported.gpus_per_node, cluster.gpus_per_node));
  }
  if (exported.profile != machines.profile.name) {
    tools::inform(fmt::format(
        "the graph was exported with the costs of profile {}, and is simulated with {}'s",
        io::quote(exported.profile), io::quote(machines.profile.name)));
  }
  return machines;
}

Result simulate_again(const ChakraOptions& options, const traces::ChakraGraph& exported,
                      const costs::LoadedMachines& machines) {
  std::vector<casync::Algorithm> algorithms;
  for (const std::string& name : exported.algorithms) {
    algorithms.push_back({.name = name, .encoded_bytes = {}});
  }
  const auto chosen = [](const std::string& asked, const std::string& otherwise) {
    return asked.empty() ? otherwise : asked;
  };
  return simulate(exported.graph, TaskCosts(machines.profile, algorithms), machines.cluster,
                  {.network = parse_network(chosen(options.network, exported.network)),
                   .transfer_order = parse_transfer_order(
                       chosen(options.transfer_order, exported.transfer_order)),
                   .record_timeline = true});
}

void print_report(const requests::SimulatedChakra& simulated) {
  const traces::ChakraGraph& exported = simulated.exported;
  const Result& result = simulated.result;
  const auto time = [](Picoseconds value) {
    return io::format_duration(casync::to_seconds(value));
  };
  fmt::print(std::cout, "{}, {}, {} tasks\n", io::printable(exported.model),
             io::printable(exported.plan), exported.graph.tasks());
  fmt::print(std::cout, "iteration              {}\n", time(result.iteration));
  fmt::print(std::cout, "compute                {}\n", time(result.compute));
  fmt::print(std::cout, "exposed communication  {}\n", time(result.iteration - result.compute));
  fmt::print(std::cout, "{}\n",
             simulated.as_exported()
                 ? std::string("every task starts and ends as exported, to the picosecond")
                 : fmt::format("exported with an iteration of {}", time(exported.iteration)));
}

int run(const ChakraOptions& options) {
  requests::SimulatedChakra simulated{.exported = traces::read_chakra_graph(options.folder)};
  const costs::LoadedMachines machines = load_machines(options, simulated.exported);
  simulated.result = simulate_again(options, simulated.exported, machines);
  if (options.json) {
    std::cout << document(simulated).print(2) << '\n';
  } else {
    print_report(simulated);
  }
  return 0;
}

}  // namespace

int run_chakra_command(int argc, char** argv) {
  ChakraOptions options;
  const tools::ToolInfo info = {
      .name = "hipress-sim",
      .purpose =
          "Simulates a graph from hipress-sim --export-chakra, on the same machines or others.",
      .example = "hipress-sim --chakra graph/ --profile sosp21"};
  return tools::run_tool(
      argc, argv, info, [&](CLI::App& app) { declare_options(app, options); },
      [&] { return run(options); });
}

}  // namespace hipress::sim
