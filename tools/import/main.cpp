// hipress-import: what a trace of a training job tells, and the model that it is.

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/error.hpp"
#include "io/file.hpp"
#include "io/utf8.hpp"
#include "io/yaml.hpp"
#include "tools/frame.hpp"
#include "tools/import/report.hpp"
#include "tools/validators.hpp"
#include "traces/imported.hpp"

namespace {

using namespace hipress;

struct Options {
  std::string trace;
  std::string output;  ///< empty: no model is written
  traces::ImportOptions import;
  bool json = false;
};

void declare_options(CLI::App& app, Options& options) {
  app.add_option("trace", options.trace,
                 "One rank's trace: PyTorch's profiler or execution trace (JSON), or a Chakra "
                 "execution trace; plain or gzipped")
      ->required();
  app.add_option("--output", options.output, "Write the model YAML that the other tools read")
      ->check(tools::file_name());
  app.add_flag("--every-all-reduce", options.import.every_all_reduce,
               "Every all-reduce carries gradients: where the trace does not tell which do");
  app.add_flag("--json", options.json, "Print one JSON object instead of the report");
}

/// "resnet50" of "traces/resnet50.kineto.json.gz".
std::string name_of(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  name = io::printable(name.substr(0, name.find('.', 1)));
  return name.empty() ? "trace" : name;
}

int run(const Options& options) {
  if (!options.output.empty()) {
    io::require_writable(options.output);
    if (!io::is_yaml_name(options.output)) {
      throw io::InputError(fmt::format(
          "--output must end in .yaml or .yml, by which the other tools know it, got {}",
          io::quote(options.output)));
    }
  }
  const traces::Imported trace = traces::read_trace(options.trace);
  if (!options.output.empty()) io::refuse_input(options.output);
  std::vector<std::string> diagnostics;
  std::optional<traces::ImportedModel> imported;
  std::optional<io::Unmet> refusal;
  try {
    imported = traces::model_of(trace, name_of(options.trace), options.import, diagnostics);
  } catch (const io::Unmet& error) {
    refusal = io::Unmet(fmt::format("{}: {}", io::printable(options.trace), error.what()));
  }
  const traces::ImportedModel* const model = imported ? &*imported : nullptr;
  if (options.json) {
    traces::print_json(trace, model, diagnostics);
  } else {
    traces::print_report(trace, model, diagnostics);
  }
  if (refusal) throw *refusal;
  if (!options.output.empty()) {
    io::write_file(options.output,
                   [&](std::ostream& out) { traces::write_model_yaml(out, *imported); });
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const tools::ToolInfo info = {
      .name = "hipress-import",
      .purpose =
          "Reads a trace of a training job: how much of a step is communication that nothing "
          "hides, and the model that the job trains.",
      .example = "hipress-import trace.json.gz --output model.yaml"};
  return tools::run_tool(
      argc, argv, info, [&](CLI::App& app) { declare_options(app, options); },
      [&] { return run(options); });
}
