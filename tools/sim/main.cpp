// hipress-sim: predicts one iteration of a plan; `hipress-sim sweep` predicts many.

#include <algorithm>
#include <iostream>
#include <string_view>

#include "requests/simulate.hpp"
#include "tools/frame.hpp"
#include "tools/options/fields.hpp"
#include "tools/sim/chakra_command.hpp"
#include "tools/sim/collectives_command.hpp"
#include "tools/sim/report.hpp"
#include "tools/sim/sweep_command.hpp"

namespace {

using namespace hipress;

/// Command line of hipress-sim without a subcommand.
struct CommandLine {
  requests::SimulateRequest request;
  bool json = false;
};

int run(const CommandLine& line) {
  const requests::Hooks hooks = {.warn = tools::warn, .inform = tools::inform};
  requests::Simulated simulated = simulate(line.request, hooks);
  if (line.json) {
    std::cout << document(simulated).print(2) << '\n';
  } else {
    sim::print_report(std::cout, simulated.scenario, simulated.prediction);
  }
  write_files(line.request, simulated);
  warn_of(line.request, simulated, hooks);
  return 0;
}

int run_single(int argc, char** argv) {
  CommandLine line;
  const tools::ToolInfo info = {
      .name = "hipress-sim",
      .purpose =
          "Predicts one iteration of a plan: the time at which each gradient is synchronised, and "
          "the critical path.\nMany at once, to CSV: hipress-sim sweep SPEC.yaml --output FILE.csv "
          "(see hipress-sim sweep --help).\nA graph from --export-chakra: hipress-sim --chakra "
          "FOLDER (see hipress-sim --chakra FOLDER --help).\nCollectives of GPUs beside published "
          "ones: hipress-sim collectives TABLE.csv.",
      .example =
          "hipress-sim --input vgg19 --plan all --topology RING --nnodes 8 --algorithm onebit",
      .needs_arguments = true};
  return tools::run_tool(
      argc, argv, info,
      [&](CLI::App& app) {
        tools::bind(app, fields(line.request));
        tools::declare_json(app, line.json);
      },
      [&] { return run(line); });
}

}  // namespace

int main(int argc, char** argv) {
  const bool sweeps = argc > 1 && argv[1] == std::string_view("sweep");
  const bool reads_graph = std::any_of(argv + std::min(argc, 1), argv + argc, [](const char* one) {
    return std::string_view(one) == "--chakra" || std::string_view(one).starts_with("--chakra=");
  });
  if (argc > 1 && argv[1] == std::string_view("collectives")) {
    return sim::run_collectives_command(argc - 1, argv + 1);
  }
  if (reads_graph && !sweeps) return sim::run_chakra_command(argc, argv);
  return sweeps ? sweep::run_sweep_command(argc - 1, argv + 1) : run_single(argc, argv);
}
