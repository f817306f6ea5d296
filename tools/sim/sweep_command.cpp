#include "tools/sim/sweep_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include "io/spelling.hpp"
#include "requests/sweep.hpp"
#include "tools/frame.hpp"
#include "tools/options/fields.hpp"

namespace hipress::sweep {
namespace {

struct SweepOptions {
  std::string spec;
  requests::SweepRequest request;
};

void declare_options(CLI::App& app, SweepOptions& options) {
  for (const requests::Field& field : fields(options.request)) {
    if (field.name == "spec") {
      app.add_option("SPEC", options.spec, field.help)->required();
    } else {
      CLI::Option& option = tools::bind(app, field);
      if (field.name == "output") option.required();
    }
  }
}

/// The axes and the plans that are made, for --help.
std::string describe_axes() {
  std::string text =
      "Every axis takes one value or a list; nodes, partitions, bandwidth, latency, overhead and\n"
      "compute_speed also a range, {from: 1Gbps, to: 64Gbps, times: 2} or {from: 2, to: 8, step: "
      "2}.\nThe points are all combinations. A file's name is looked for beside the spec first.\n\n"
      "Axes (default):\n";
  for (const AxisRow& axis : axes()) {
    const std::string_view otherwise = axis.fallback.empty() ? axis.otherwise : axis.fallback;
    text += fmt::format("  {:<15} {} ({})\n", axis.name, io::as_command_line(axis.help), otherwise);
  }
  text += "\nPlans that are made anew for the machines of each point:\n";
  for (const planner::NamedPlanRow& row : planner::named_plan_rows()) {
    text += fmt::format("  {:<17} {}\n", row.name, io::as_command_line(row.help));
  }
  return text +
         "\nspeedup is the iteration time of plan 'none', which sends every gradient alone, at the "
         "same\npoint over the row's; speedup_over_ddp that of plan 'ddp'.";
}

/// A line on the terminal that counts something, and is ended whatever happens.
class ProgressLine {
 public:
  explicit ProgressLine(std::string_view what) : what_(what) {}
  ProgressLine(const ProgressLine&) = delete;
  ~ProgressLine() {
    if (shown_) std::cerr << std::endl;
  }
  void show(std::int64_t done, std::int64_t all) {
    const std::int64_t step = std::max<std::int64_t>(1, all / 1000);
    if (!terminal_ || (done % step != 0 && done != all)) return;
    std::cerr << fmt::format("\r{} of {} {}", done, all, what_) << std::flush;
    shown_ = true;
  }

 private:
  const std::string_view what_;
  const bool terminal_ = ::isatty(STDERR_FILENO) != 0;
  bool shown_ = false;
};

int run(const SweepOptions& options) {
  requests::SweepRequest request = options.request;
  request.spec = options.spec;
  std::optional<ProgressLine> line;
  requests::Hooks hooks = {.warn = tools::warn, .inform = tools::inform};
  hooks.progress = [&](const requests::Progress& progress) {
    if (!line) line.emplace(progress.stage);
    line->show(progress.done, progress.all);
  };
  hooks.stage_done = [&] { line.reset(); };
  requests::sweep(request, hooks);
  return 0;
}

}  // namespace

int run_sweep_command(int argc, char** argv) {
  SweepOptions options;
  const tools::ToolInfo info = {
      .name = "hipress-sim sweep",
      .purpose =
          "Predicts every combination of the values that a spec lists, one CSV row each.\n\n" +
          describe_axes(),
      .example = "hipress-sim sweep examples/sweep.yaml --output sweep.csv --jobs 2"};
  return tools::run_tool(
      argc, argv, info, [&](CLI::App& app) { declare_options(app, options); },
      [&] { return run(options); });
}

}  // namespace hipress::sweep
