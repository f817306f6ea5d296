#include "tools/import/topology_command.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <string>

#include "costs/host_topology.hpp"
#include "io/file.hpp"
#include "io/quantity.hpp"
#include "tools/frame.hpp"

namespace hipress::traces {
namespace {

struct TopologyCommand {
  std::string file, output, rate;
  costs::TopologyOptions known;
};

int run(TopologyCommand options) {
  if (!options.rate.empty()) options.known.rate = io::parse_bandwidth(options.rate, "`rate`");
  const costs::HostTopology topology = costs::read_host_topology(options.file);
  costs::Machine machine = costs::machine_of(topology, options.known);
  machine.name = std::filesystem::path(options.output).stem().string();
  io::refuse_input(options.output);
  costs::write_machine(options.output, machine);
  fmt::print(std::cout, "{}\n", in_words(topology, machine));
  return 0;
}

}  // namespace

int run_topology_command(int argc, char** argv) {
  TopologyCommand options;
  const tools::ToolInfo info = {.name = "hipress-import topology",
                                .purpose =
                                    "Makes a machine, for --machine, from the reports of a host's "
                                    "tools about its GPUs and cards. Missing values are taken from "
                                    "a shipped machine with such GPUs, and marked in sources.",
                                .example = "hipress-import topology topo.xml --output mine.yaml",
                                .needs_arguments = true};
  return tools::run_tool(
      argc, argv, info,
      [&](CLI::App& app) {
        app.add_option("FILE", options.file,
                       "NCCL's topology (NCCL_TOPO_DUMP_FILE), or the output of nvidia-smi topo -m")
            ->required();
        app.add_option("--output", options.output, "Machine to write")->required();
        app.add_option("--rate", options.rate,
                       "Rate of a card, such as 400Gbps (default: the file's, else the shipped "
                       "machine's)");
        app.add_option("--network", options.known.network,
                       "Kind of network, such as infiniband or roce (default: the file's, else the "
                       "shipped machine's)");
        app.add_option("--like", options.known.like,
                       "Machine with the same GPUs: a file or a name (default: by compute "
                       "capability and NVLinks)");
      },
      [&] { return run(options); });
}

}  // namespace hipress::traces
