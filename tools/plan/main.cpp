// hipress-plan: decides for each gradient whether to compress it, and how many partitions it gets.
// Without a profile, it can replace SeCoPa.py: it takes the same options and writes the same file.

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <unistd.h>

#include <iostream>
#include <optional>
#include <string>

#include "io/interrupts.hpp"
#include "io/quantity.hpp"
#include "io/spelling.hpp"
#include "models/traced.hpp"
#include "requests/plan.hpp"
#include "requests/report.hpp"
#include "tools/frame.hpp"
#include "tools/plan/analysis_report.hpp"
#include "tools/plan/broadcast.hpp"
#include "tools/plan/hosts.hpp"
#include "tools/plan/report.hpp"
#include "tools/plan/schedules.hpp"

namespace {

using namespace hipress;
using planner::Options;

/// Draws a progress bar. Only used on terminals.
void show_progress(const requests::Progress& progress) {
  constexpr int kWidth = 30;
  const int done = static_cast<int>(progress.share * kWidth);
  fmt::print(stderr, "\r[{:=<{}}{:<{}}] best {:>10} ", "", done, "", kWidth - done,
             io::format_duration(progress.best_s.value_or(0)));
}

/// Announces a long search, and that an interrupt ends it with the best plan so far.
void announce(const planner::Request& request) {
  constexpr double kLong_s = 30;
  if (request.evaluations || request.budget_s.value_or(0) < kLong_s) return;
  tools::inform("searching; an interrupt ends the search with the best plan so far");
}

/// Hooks of a request. An interrupt ends a search that optimises, or else the program.
requests::Hooks hooks_of(const Options& options, std::optional<io::InterruptScope>& scope) {
  requests::Hooks made;
  made.warn = tools::warn;
  made.inform = tools::inform;
  made.interrupted = &io::InterruptScope::flag();
  made.optimises = [&] {
    scope.emplace();
    announce(options.request.request);
  };
  if (isatty(STDERR_FILENO) == 0) return made;
  made.progress = show_progress;
  made.stage_done = [] { fmt::print(stderr, "\n"); };
  return made;
}

void say(const std::string& sentence) {
  fmt::print(std::cout, "{}\n", io::as_command_line(sentence));
}

void print(const Options& options, const requests::Planned& planned) {
  const planner::Advice& advice = planned.advice;
  const planner::Problem& problem = *advice.problem;
  say(planner::in_lines(advice.verdict.sentence));
  if (planned.traced) say(models::most_gain(*planned.traced));
  say(machines_of(*planned.prepared, problem));
  print_report(options, problem, advice.found.plan);
  if (const auto speed = requests::throughput_of(planned)) planner::print_throughput(*speed);
  if (planned.schedules)
    planner::print_schedules(std::cout, planned);
  else if (options.prints_times())
    print_table(options, problem, planned.prepared->profile, advice.comparison);
  planner::print_analysis(std::cout, planned.request.request.analysis, problem, advice.analysis);
  if (planned.break_even)
    planner::print_break_even(std::cout, *planned.break_even, problem.tolerance);
  if (options.request.advise) planner::print_in_words(std::cout, planned.in_words);
}

int run(Options& options) {
  if (options.list_passes) {
    planner::print_passes(std::cout);
    return 0;
  }
  if (planner::answer_hosts(options)) return 0;
  std::optional<io::InterruptScope> scope;
  requests::Hooks hooks = hooks_of(options, scope);
  const bool broadcasts = options.request.job == "broadcast";
  if (broadcasts || options.request.required_bandwidth) {
    hooks.optimises = {};
    hooks.progress = {};
    broadcasts ? planner::run_broadcast(options, hooks) : planner::run_bandwidths(options, hooks);
    return 0;
  }
  options.choose_output();
  const auto planned = requests::plan(options.request, hooks);
  if (options.json)
    std::cout << document(*planned).print(2) << '\n';
  else
    print(options, *planned);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const tools::ToolInfo info = {
      .name = "hipress-plan",
      .purpose = "Decides which gradients to compress, and into how many partitions to cut them.",
      .example = "hipress-plan --input vgg19 --nnodes 16 --profile a100-10g --compute-time 120ms",
      .needs_arguments = true};
  return tools::run_tool(
      argc, argv, info, [&](CLI::App& app) { declare_options(app, options); },
      [&] { return run(options); });
}
