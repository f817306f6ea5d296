// hipress-import: what a trace of a training job tells, and the model that it is.

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/error.hpp"
#include "io/file.hpp"
#include "io/quantity.hpp"
#include "io/utf8.hpp"
#include "io/yaml.hpp"
#include "tools/frame.hpp"
#include "traces/imported.hpp"

namespace {

using namespace hipress;
using Json = nlohmann::ordered_json;

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

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json step_json(const traces::TracedStep& step) {
  return {{"name", step.name},
          {"step_s", or_null(step.length_s)},
          {"forward_s", or_null(step.forward_s)},
          {"compute_s", or_null(step.compute_s)},
          {"communication_s", or_null(step.communication_s)},
          {"exposed_communication_s", or_null(step.exposed_communication_s)},
          {"idle_s", or_null(step.idle_s)},
          {"collective_elements", or_null(step.collective_elements())}};
}

void print_json(const traces::Imported& trace, const traces::ImportedModel* imported,
                const std::vector<std::string>& diagnostics) {
  Json steps = Json::array();
  for (const traces::TracedStep& step : trace.steps) steps.push_back(step_json(step));
  Json report = {{"format", trace.format},
                 {"events", trace.events},
                 {"steps", steps},
                 {"gradients", imported ? Json(imported->model.gradients.size()) : Json()},
                 {"elements", imported ? Json(models::total_elements(imported->model)) : Json()},
                 {"world_size", or_null(trace.world_size)},
                 {"hardware", trace.hardware.empty() ? Json() : Json(trace.hardware)},
                 {"collectives", trace.collectives},
                 {"cpu_duplicates", trace.cpu_duplicates},
                 {"not_told", trace.not_told},
                 {"diagnostics", diagnostics}};
  if (imported && imported->traced) report["most_gain"] = models::most_gain(*imported->traced);
  std::cout << report.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

std::string or_dash(const std::optional<double>& seconds) {
  return seconds ? io::format_duration(*seconds) : "-";
}

void print_report(const traces::Imported& trace, const traces::ImportedModel* imported,
                  const std::vector<std::string>& diagnostics) {
  fmt::print(std::cout, "{}, {}{}, {} {}\n\n", trace.format,
             trace.hardware.empty() ? "hardware not told" : trace.hardware,
             trace.world_size ? fmt::format(", {} ranks", *trace.world_size) : "", trace.events,
             trace.collectives > 0 ? "nodes" : "events");
  fmt::print(std::cout, "{:<18} {:>9} {:>9} {:>9} {:>13} {:>9} {:>9} {:>19}\n", "", "step",
             "forward", "compute", "communication", "exposed", "idle", "collective elements");
  for (const traces::TracedStep& step : trace.steps) {
    const auto elements = step.collective_elements();
    fmt::print(std::cout, "{:<18} {:>9} {:>9} {:>9} {:>13} {:>9} {:>9} {:>19}\n", step.name,
               or_dash(step.length_s), or_dash(step.forward_s), or_dash(step.compute_s),
               or_dash(step.communication_s), or_dash(step.exposed_communication_s),
               or_dash(step.idle_s), elements ? std::to_string(*elements) : "-");
  }
  fmt::print(std::cout, "\n");
  if (imported) {
    fmt::print(std::cout, "{} gradients, {} elements\n", imported->model.gradients.size(),
               models::total_elements(imported->model));
    if (imported->traced) fmt::print(std::cout, "{}\n", models::most_gain(*imported->traced));
  }
  for (const std::string& sentence : trace.not_told) {
    fmt::print(std::cout, "not told: {}\n", sentence);
  }
  for (const std::string& sentence : diagnostics) spdlog::info("{}", sentence);
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
    print_json(trace, model, diagnostics);
  } else {
    print_report(trace, model, diagnostics);
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
