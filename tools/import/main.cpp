// hipress-import: makes a model from a trace of a training job.

#include <CLI/CLI.hpp>
#include <iostream>
#include <string_view>

#include "requests/import_trace.hpp"
#include "tools/frame.hpp"
#include "tools/import/collectives_command.hpp"
#include "tools/import/report.hpp"
#include "tools/import/topology_command.hpp"
#include "tools/options/fields.hpp"

namespace {

using namespace hipress;

struct Options {
  requests::ImportRequest request;
  bool json = false;
};

void declare_options(CLI::App& app, Options& options) {
  for (const requests::Field& field : fields(options.request)) {
    tools::bind(app, field, field.name == "trace" ? "trace" : "");
  }
  tools::declare_json(app, options.json);
}

int run(const Options& options) {
  const requests::ImportedTrace imported = import_trace(options.request);
  if (options.json) {
    std::cout << document(imported).print(2) << '\n';
  } else {
    traces::print_report(imported.trace, imported.model_or_null(), imported.diagnostics);
  }
  write_model(options.request, imported);
  return 0;
}

struct Command {
  std::string_view name;
  int (*run)(int argc, char** argv);
};
constexpr Command kCommands[] = {
    {"collectives", traces::run_collectives_command},
    {"topology", traces::run_topology_command},
};

}  // namespace

int main(int argc, char** argv) {
  for (const Command& command : kCommands) {
    if (argc > 1 && argv[1] == command.name) return command.run(argc - 1, argv + 1);
  }
  Options options;
  const tools::ToolInfo info = {
      .name = "hipress-import",
      .purpose =
          "Reads a trace of a training job: the exposed communication of a step, and the model "
          "that the job trains.\nA model without a trace: config.json, a safetensors index or "
          "file, a listing of names and shapes, or a name (llama3_8b).\nLogs of nccl-tests into a "
          "profile: hipress-import collectives LOG; a host's topology into a machine: "
          "hipress-import topology FILE (each has --help).",
      .example = "hipress-import trace.json.gz --output model.yaml",
      .needs_arguments = true};
  return tools::run_tool(
      argc, argv, info, [&](CLI::App& app) { declare_options(app, options); },
      [&] { return run(options); });
}
