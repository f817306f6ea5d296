// hipress-plan: decides per gradient whether to compress it, and into how many partitions. Without
// a profile it does what SeCoPa.py did, from the same options to the same file.

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <unistd.h>

#include <iostream>
#include <optional>
#include <string>

#include "io/file.hpp"
#include "io/interrupts.hpp"
#include "io/quantity.hpp"
#include "io/spelling.hpp"
#include "models/traced.hpp"
#include "planner/advice/advice.hpp"
#include "plans/plan_file.hpp"
#include "tools/frame.hpp"
#include "tools/plan/analysis_report.hpp"
#include "tools/plan/broadcast.hpp"
#include "tools/plan/report.hpp"

namespace {

using namespace hipress;
using planner::Options;

/// A bar on terminals only.
void show_progress(double share, double best_s) {
  constexpr int kWidth = 30;
  const int done = static_cast<int>(share * kWidth);
  fmt::print(stderr, "\r[{:=<{}}{:<{}}] best {:>10} ", "", done, "", kWidth - done,
             io::format_duration(best_s));
}

planner::Hooks hooks() {
  planner::Hooks made;
  made.warn = [](const std::string& sentence) { tools::warn(sentence); };
  made.interrupted = &io::InterruptScope::flag();
  if (isatty(STDERR_FILENO) == 0) return made;
  made.progress = show_progress;
  made.searched = [] { fmt::print(stderr, "\n"); };
  return made;
}

/// Writes a plan that was searched, and prints what is known of it.
void finish(const Options& options, const planner::PreparedRequest& prepared,
            planner::Advice& advice) {
  for (const std::string& warning : advice.analysis.warnings) tools::warn(warning);
  planner::SearchResult& found = advice.found;
  if (prepared.searches()) {
    add_replay_diagnostics(options, prepared.model, prepared.profile, found);
    write_plan(options, prepared.model, found, prepared.profile, advice.comparison,
               advice.analysis.dense);
  }
  for (const std::string& diagnostic : found.diagnostics) tools::inform(diagnostic);
  const std::optional<models::Traced> traced = models::read_traced(prepared.request.input);
  if (options.json) {
    print_json(advice, traced);
    return;
  }
  const planner::Problem& problem = *advice.problem;
  fmt::print(std::cout, "{}\n", io::as_command_line(advice.verdict.sentence));
  if (traced) fmt::print(std::cout, "{}\n", models::most_gain(*traced));
  fmt::print(std::cout, "{}\n", io::as_command_line(machines_of(prepared, problem)));
  print_report(options, problem, found.plan);
  if (options.prints_times()) print_table(options, problem, prepared.profile, advice.comparison);
  planner::print_analysis(std::cout, options.request.analysis, problem, advice.analysis);
}

/// Whoever waits for long should know that what is found is not lost.
void announce(const planner::Request& request) {
  constexpr double kLong_s = 30;
  if (request.evaluations || request.budget_s.value_or(0) < kLong_s) return;
  tools::inform("searching; an interrupt ends the search with the best plan so far");
}

int run(const Options& options) {
  if (options.list_passes) {
    planner::print_passes(std::cout);
    return 0;
  }
  if (options.job == "broadcast") {
    planner::run_broadcast(options);
    return 0;
  }
  planner::refuse_broadcast_options(options.broadcast);
  sim::parse_network(options.request.network);  // refused before files are read
  const planner::PreparedRequest prepared(options.request, options.form(), hooks());
  if (prepared.searches()) {
    io::require_writable(options.output);
    io::refuse_input(options.output);
    if (!options.yaml()) plans::require_text_names(prepared.model);
  }
  // Other searches are soon done, and an interrupt ends the program.
  std::optional<io::InterruptScope> scope;
  if (prepared.optimises()) {
    scope.emplace();
    announce(options.request);
  }
  planner::Advice advice = planner::advise(prepared);
  finish(options, prepared, advice);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const tools::ToolInfo info = {
      .name = "hipress-plan",
      .purpose = "Decides which gradients to compress, and into how many partitions to cut them.",
      .example = "hipress-plan --input vgg19_gradients.txt --topology PS --nnodes 16"};
  return tools::run_tool(
      argc, argv, info, [&](CLI::App& app) { declare_options(app, options); },
      [&] { return run(options); });
}
