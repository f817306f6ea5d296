#include "tools/sim/sweep_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include "io/error.hpp"
#include "io/interrupts.hpp"
#include "io/spelling.hpp"
#include "requests/headings.hpp"
#include "requests/sweep.hpp"
#include "tools/frame.hpp"
#include "tools/options/fields.hpp"
#include "tools/sim/slurm.hpp"
#include "tools/validators.hpp"

namespace hipress::sweep {
namespace {

struct SweepOptions {
  std::string spec;
  requests::SweepRequest request;
  std::int64_t slurm_tasks = 0;  ///< 0: run in this process
  bool json = false;
};

void declare_options(CLI::App& app, SweepOptions& options) {
  for (const requests::Field& field : fields(options.request)) {
    if (field.name == "spec") {
      app.add_option("SPEC", options.spec, field.help)->required();
    } else {
      tools::bind(app, field);
    }
  }
  tools::declare_json(
      app, options.json,
      "Print one JSON object with the columns and rows; --output may then be left out");
  app.add_option(
         "--slurm", options.slurm_tasks,
         "Number of Slurm tasks: submit an array of them, wait for it, and join their parts. "
         "sbatch's own variables select where it runs: SBATCH_PARTITION, SBATCH_ACCOUNT, ...")
      ->check(tools::count_from(1, 100'000))
      ->group(std::string(requests::headings::kRun));
}

/// List of axes and of plan names, for --help.
std::string describe_axes() {
  std::string text =
      "Every axis takes one value or a list; those marked * also a range:\n"
      "  {from: 1Gbps, to: 64Gbps, times: 2}\n"
      "  {from: 2, to: 8, step: 2}\n"
      "  {from: 1Gbps, to: 100Gbps, points: 9, scale: log}\n"
      "The points are all combinations. A file's name is looked for beside the spec first.\n\n"
      "Axes (default):\n";
  for (const AxisRow& axis : axes()) {
    const std::string_view otherwise = axis.fallback.empty() ? axis.otherwise : axis.fallback;
    text += fmt::format("{} {:<16} {} ({})\n", axis.numeric() ? '*' : ' ', axis.name,
                        io::as_command_line(axis.help), otherwise);
  }
  text += "\nPlans that are made for the machines of each point:\n";
  for (const planner::NamedPlanRow& row : planner::named_plan_rows()) {
    text += fmt::format("  {:<17} {}\n", row.name, io::as_command_line(row.help));
  }
  return text +
         "\nspeedup is the iteration time of plan 'none', which sends every gradient alone, at the "
         "same\npoint over the row's; speedup_over_ddp that of plan 'ddp'. Columns _p10 and _p90 "
         "are their\n10-90 % intervals. Lines that begin with # list the inputs of the file.";
}

/// Shows the progress of a stage: as a bar on terminals, elsewhere as a line per minute. The
/// destructor ends the bar.
class ProgressLine {
 public:
  explicit ProgressLine(std::string_view what) : what_(what) {}
  ProgressLine(const ProgressLine&) = delete;
  ~ProgressLine() {
    if (shown_ && terminal_) std::cerr << std::endl;
  }

  void show(std::int64_t done, std::int64_t all) {
    const auto now = Clock::now();
    if (done < all && now < next_) return;
    next_ = now + (terminal_ ? kBetweenBars : kBetweenLines);
    if (!terminal_ && done == all) return;
    const std::string text = fmt::format("{} of {} {}{}", done, all, what_, left(done, all, now));
    if (terminal_) {
      constexpr int kWidth = 30;
      const int filled = static_cast<int>(kWidth * done / all);
      std::cerr << fmt::format("\r[{:=<{}}{:<{}}] {:<60}", "", filled, "", kWidth - filled, text)
                << std::flush;
    } else {
      tools::inform(text);
    }
    shown_ = true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kBetweenBars = std::chrono::milliseconds(200);
  static constexpr Clock::duration kBetweenLines = std::chrono::minutes(1);

  /// Remaining time, extrapolated from the mean rate so far: ", about 90 s left".
  std::string left(std::int64_t done, std::int64_t all, Clock::time_point now) const {
    if (done == all) return "";
    const double past_s = std::chrono::duration<double>(now - begin_).count();
    const double left_s = past_s * static_cast<double>(all - done) / static_cast<double>(done);
    if (left_s < 120) return fmt::format(", about {:.0f} s left", left_s);
    if (left_s < 7200) return fmt::format(", about {:.0f} min left", left_s / 60);
    return fmt::format(", about {:.1f} h left", left_s / 3600);
  }

  const std::string_view what_;
  const bool terminal_ = ::isatty(STDERR_FILENO) != 0;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point next_ = begin_ + (terminal_ ? kBetweenBars : kBetweenLines);
  bool shown_ = false;
};

void say_what_is_kept(const requests::SweepRequest& request) {
  const std::string folder = requests::cache_folder(request);
  if (folder.empty()) return;
  tools::inform(fmt::format(
      "interrupted; simulated points are kept in {}, and the same command continues from there",
      folder));
}

int sweep_here(const requests::SweepRequest& request, bool json) {
  std::optional<ProgressLine> line;
  requests::Hooks hooks = {.warn = tools::warn, .inform = tools::inform};
  hooks.progress = [&](const requests::Progress& progress) {
    if (!line) line.emplace(progress.stage);
    line->show(progress.done, progress.all);
  };
  hooks.stage_done = [&] { line.reset(); };
  hooks.interrupted = &io::InterruptScope::flag();
  const io::InterruptScope scope;
  try {
    const requests::Swept swept = requests::sweep(request, hooks);
    if (json) std::cout << document(swept).print(2) << '\n';
  } catch (const requests::Interrupted&) {
    line.reset();
    say_what_is_kept(request);
    io::end_interrupted();
  }
  return 0;
}

int run(const SweepOptions& options) {
  requests::SweepRequest request = options.request;
  request.spec = options.spec;
  if (request.output.empty() && !options.json) {
    throw io::InputError("--output is required: name the CSV to write, or give --json");
  }
  if (options.slurm_tasks == 0) return sweep_here(request, options.json);
  if (options.json) throw io::InputError("--slurm writes a CSV: leave out --json");
  return sweep_by_slurm(options.spec, request, options.slurm_tasks);
}

}  // namespace

int run_sweep_command(int argc, char** argv) {
  SweepOptions options;
  const tools::ToolInfo info = {
      .name = "hipress-sim sweep",
      .purpose =
          "Predicts every combination of the values that a spec lists, one CSV row each.\n\n" +
          describe_axes(),
      .example =
          "hipress-sim sweep '{model: vgg19, plan: [none, all], nodes: [2, 4, 8]}' "
          "--output sweep.csv",
      .needs_arguments = true};
  return tools::run_tool(
      argc, argv, info, [&](CLI::App& app) { declare_options(app, options); },
      [&] { return run(options); });
}

}  // namespace hipress::sweep
