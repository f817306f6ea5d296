#include "tools/sim/sweep_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

#include "io/file.hpp"
#include "io/memory.hpp"
#include "io/processors.hpp"
#include "io/spelling.hpp"
#include "kernels/codec/algorithm_list.hpp"
#include "sweep/sweep.hpp"
#include "tools/frame.hpp"
#include "tools/options/shared.hpp"
#include "tools/validators.hpp"

namespace hipress::sweep {
namespace {

struct SweepOptions {
  std::string spec;
  std::string output;
  unsigned jobs = 0;  ///< 0: one per usable core
  std::string shard = "1/1";
  std::string algorithms;
  std::int64_t evaluations = planner::kEvaluations;
  plans::Trust trust;
};

void declare_options(CLI::App& app, SweepOptions& options) {
  app.add_option("SPEC", options.spec, "YAML that lists the values of each axis")->required();
  app.add_option("--output", options.output, "CSV to write: one row per point, whole or not at all")
      ->required();
  app.add_option("--jobs", options.jobs,
                 "Threads; the output does not depend on it (default: one per core)")
      ->check(tools::count_from(1, 4096));
  app.add_option("--shard", options.shard,
                 "I/M: the I-th of M contiguous parts. Only the first has the header, so that the "
                 "parts' files one after the other are the whole file")
      ->capture_default_str();
  app.add_option("--algorithm", options.algorithms,
                 "Programs (x.pse,y.pse) that the spec and its plans may bring");
  app.add_option("--evaluations", options.evaluations,
                 "Plans that the search for plan 'best' simulates at each point; more: a better "
                 "plan, later")
      ->capture_default_str()
      ->check(tools::count_from(1));
  tools::declare(app, options.trust);
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

std::unique_ptr<Sweep> plan_with_progress(const SweepSpec& spec, const Shard& shard,
                                          std::int64_t evaluations, unsigned jobs) {
  ProgressLine line("plans");
  return std::make_unique<Sweep>(
      spec, shard,
      Planning{.evaluations = evaluations,
               .jobs = jobs,
               .progress = [&](std::int64_t done, std::int64_t all) { line.show(done, all); }});
}

std::vector<SweepRow> run_with_progress(Sweep& sweep, unsigned jobs) {
  ProgressLine line("simulations");
  return sweep.run(jobs, [&](std::int64_t done, std::int64_t all) { line.show(done, all); });
}

void warn_of_unused(const SweepSpec& spec, const Shard& shard, const std::vector<SweepRow>& rows) {
  if (shard.count > 1) return;  // a part does not tell
  for (const std::string_view axis : axes_without_effect(spec, rows)) {
    tools::warn(fmt::format("axis {} has no effect: all its values give the same times", axis));
  }
}

int run(const SweepOptions& options) {
  const Shard shard = parse_shard(options.shard);
  plans::Trust trust = options.trust;
  trust.named = kernels::split_algorithms(options.algorithms);
  const SweepSpec spec = read_sweep(options.spec, trust);
  io::require_writable(options.output);
  io::refuse_input(options.output);
  const unsigned jobs =
      options.jobs > 0 ? options.jobs : static_cast<unsigned>(io::usable_cores().size());
  const auto sweep = plan_with_progress(spec, shard, options.evaluations, jobs);
  const SweepSize& size = sweep->size();
  tools::inform(
      fmt::format("{} points, {} plans made, {} graphs, {} simulations, about {:.3g} tasks in all",
                  size.points, size.planned, size.graphs, size.simulations, size.tasks));
  sweep->require_room(jobs, io::available_memory());
  const std::vector<SweepRow> rows = run_with_progress(*sweep, jobs);
  io::refuse_input(options.output);
  io::write_file(options.output, [&](std::ostream& out) { write_sweep(out, spec, shard, rows); });
  warn_of_unused(spec, shard, rows);
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
