// hipress-plan: decides per gradient whether to compress it, and into how many partitions. Without
// a profile it does what SeCoPa.py did, from the same options to the same file.

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "costs/description.hpp"
#include "costs/levels.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/interrupts.hpp"
#include "io/memory.hpp"
#include "io/quantity.hpp"
#include "models/traced.hpp"
#include "planner/advice/comparison.hpp"
#include "planner/analysis/break_even.hpp"
#include "planner/bound/bound.hpp"
#include "planner/problem/budget.hpp"
#include "planner/problem/choices.hpp"
#include "planner/problem/levels.hpp"
#include "planner/search/secopa_costs.hpp"
#include "plans/plan_file.hpp"
#include "sim/parallel.hpp"
#include "tools/frame.hpp"
#include "tools/plan/broadcast.hpp"
#include "tools/plan/report.hpp"

namespace {

using namespace hipress;
using planner::Comparison;
using planner::Options;

constexpr double kBesideBudget_s = 10;  // for simulations beside the search and the passes
constexpr double kNoEnd_s = 1e9;
constexpr double kShareOfLevels = 0.5;      // of the budget, where GPUs can be at one of two levels
constexpr double kShareUncompressed = 0.5;  // of that, where compression is a choice
constexpr double kDropInBudget_s = 0.5;     // for plans without compression beside SeCoPa's

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// The plan that is given may be for the cluster with its GPUs at another level.
costs::Cluster for_plan(const costs::Cluster& cluster, const std::string& plan) {
  return costs::with_nodes(cluster, plans::nodes_of_plan(plan).value_or(cluster.nodes));
}

/// A bar on terminals only.
void show_progress(double share, double best_s) {
  constexpr int kWidth = 30;
  const int done = static_cast<int>(share * kWidth);
  fmt::print(stderr, "\r[{:=<{}}{:<{}}] best {:>10} ", "", done, "", kWidth - done,
             io::format_duration(best_s));
}

/// The model, with the times that the options give it.
models::Model read_model(const Options& options, std::vector<std::string>& diagnostics) {
  models::Model model = models::read_model(options.input);
  diagnostics = models::apply(options.times, model);
  return model;
}

/// What is asked for: a problem, and what it points to.
struct Request {
  Request(const Options& given, const planner::SearchRow& row);
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  /// Else a plan is given.
  bool searches() const { return options.analysis.plan.empty(); }
  bool optimises() const { return search.optimises && searches(); }
  /// Of the budget, for one level of GPUs.
  double share_of_level() const { return other ? kShareOfLevels : 1; }
  /// Of that, for a search that compresses.
  double share_of_search() const {
    return optimises() && search.has_budget && planner::may_compress(problem)
               ? 1 - kShareUncompressed
               : 1;
  }

  const Options& options;
  const planner::SearchRow& search;
  std::vector<std::string> diagnostics;
  const models::Model model;
  planner::Problem problem;
  costs::Profile profile;                     ///< of the machines
  costs::Profile secopa_profile;              ///< of SeCoPa's formulas
  std::optional<planner::Machines> machines;  ///< made by read_machines()
  /// The GPUs at another level, for which half of the budget is then; null: they stay. A plan of
  /// SeCoPa's text is for the given level, and may have its rival at another.
  std::unique_ptr<const planner::OtherLevels> other;

 private:
  void read_machines();
  void add_foreign_costs();
};

/// Reads everything, and refuses what cannot be done before anything takes long.
Request::Request(const Options& given, const planner::SearchRow& row)
    : options(given),
      search(row),
      model(read_model(given, diagnostics)),
      problem(problem_of(given, row, model)) {
  problem.limits.interrupted = &io::InterruptScope::flag();
  problem.choices = search.choices;
  if (isatty(STDERR_FILENO) != 0) problem.limits.progress = show_progress;
  warn_of_unused(options, search);
  warn_of_assumptions(options, problem);
  read_machines();
  add_foreign_costs();
  planner::check(options.analysis, problem, search);
  if (searches()) {
    io::require_writable(options.output);
    io::refuse_input(options.output);
    if (!options.yaml()) plans::require_text_names(model);
  }
  if (optimises() && problem.strategy == "best") {
    other = planner::OtherLevels::of(problem, diagnostics);
  }
}

void Request::read_machines() {
  costs::LoadedMachines loaded = costs::load(options.machines, options.nodes, problem.nodes);
  diagnostics.insert(diagnostics.end(), loaded.diagnostics.begin(), loaded.diagnostics.end());
  for (const std::string& warning : loaded.warnings) spdlog::warn("{}", warning);
  profile = std::move(loaded.profile);
  costs::Cluster cluster = std::move(loaded.cluster);
  if (!searches()) cluster = for_plan(cluster, options.analysis.plan);
  problem.nodes = cluster.nodes;
  secopa_profile = planner::profile_on_link(profile, cluster.link);
  if (!options.machines.profile.empty()) problem.profile = &secopa_profile;
  machines.emplace(planner::Machines{profile, cluster, sim::parse_network(options.network)});
  machines->memory_bytes = static_cast<double>(io::available_memory()) / std::max(1u, options.jobs);
  // Other searches go on until they are done, and evaluations are counted rather than timed.
  const bool ends = !options.evaluations && (!search.optimises || search.has_budget);
  machines->budget = std::make_shared<planner::SimulationBudget>(
      ends ? (1 + planner::kPassAllowance) * problem.limits.budget_s + kBesideBudget_s : kNoEnd_s,
      problem.limits.interrupted);
  problem.machines = &*machines;
}

/// Whose costs algorithms have that have none of their own.
void Request::add_foreign_costs() {
  for (const std::string& name : problem.algorithms) {
    const bool published = problem.profile == nullptr && !search.simulates;
    std::string diagnostic =
        published ? planner::diagnose_published_costs(name) : costs::foreign_costs(profile, name);
    if (!diagnostic.empty()) diagnostics.push_back(std::move(diagnostic));
  }
}

/// What came of a request.
struct Outcome {
  planner::SearchResult found;
  double search_s = 0;
  const planner::Problem* problem = nullptr;  ///< that the plan is of: with GPUs at which level
  Comparison comparison;
  planner::Verdict verdict;
  planner::Analysis analysis;
};

/// Searches a plan with a share of the budget, or reads the one that is given.
planner::SearchResult find_plan(const Request& request, const planner::Problem& problem,
                                double share) {
  const Options& options = request.options;
  if (!request.searches()) {
    planner::TimedPlan given =
        planner::read_plan(options.analysis.plan, problem, topology_of(options, request.search),
                           options.analysis.order);
    return {
        .plan = std::move(given.plan), .diagnostics = {}, .transfer_order = given.transfer_order};
  }
  planner::Problem limited = problem;
  limited.limits =
      planner::share_of(planner::limits_of_search(options.analysis, problem.limits), share);
  planner::SearchResult found = request.search.search(limited);
  if (problem.limits.progress) fmt::print(stderr, "\n");
  return found;
}

/// Searches the best plan without compression, which is what compression is measured by; none where
/// nothing can be compressed.
std::optional<planner::SearchResult> find_uncompressed(const Request& request,
                                                       const planner::Problem& problem) {
  if (!planner::may_compress(problem)) return std::nullopt;
  planner::Limits limits =
      planner::share_of(problem.limits, request.share_of_level() * kShareUncompressed);
  if (!request.search.has_budget) limits.budget_s = std::min(limits.budget_s, kDropInBudget_s);
  return planner::search_uncompressed(problem, limits);
}

/// Both, at the same time where there are jobs for that: neither knows the other's plans.
std::pair<planner::SearchResult, std::optional<planner::SearchResult>> find_both(
    const Request& request, const planner::Problem& problem) {
  std::pair<planner::SearchResult, std::optional<planner::SearchResult>> found;
  sim::run_parallel(2, problem.limits.jobs, [&](std::size_t i, unsigned) {
    if (i == 0) {
      found.first =
          find_plan(request, problem, request.share_of_level() * request.share_of_search());
    } else {
      found.second = find_uncompressed(request, problem);
    }
  });
  return found;
}

void consider_uncompressed(const Request& request, const planner::Problem& problem,
                           const std::optional<planner::SearchResult>& found, Outcome& outcome) {
  if (!found) return;
  planner::consider_uncompressed(problem, *found, outcome.comparison);
  if (request.optimises()) outcome.found.evaluations += found->evaluations;
}

/// Searches with the GPUs at another level; that plan is the outcome if it is faster.
void search_other_levels(const Request& request, Outcome& outcome) {
  const planner::Problem& other = request.other->problem();
  if (!request.options.yaml()) {
    const std::optional<planner::TimedPlan> raw = outcome.comparison.raw;
    consider_uncompressed(request, other, find_uncompressed(request, other), outcome);
    outcome.comparison.raw = raw;
    return;
  }
  planner::SearchResult& found = outcome.found;
  auto [result, uncompressed] = find_both(request, other);
  consider_uncompressed(request, other, uncompressed, outcome);
  planner::AffordableTime time = planner::affordable_iteration(
      other.model, result.plan, *other.machines, result.transfer_order);
  const std::optional<planner::TimedPlan>& raw = outcome.comparison.raw;
  const bool raw_is_of_them = raw && raw->plan.nodes == other.nodes;
  if (raw_is_of_them && time.iteration_s && raw->iteration_s < *time.iteration_s) {
    result.plan = raw->plan;
    result.transfer_order = raw->transfer_order;
    time.iteration_s = raw->iteration_s;
  }
  found.evaluations += result.evaluations;
  found.complete = found.complete && result.complete;
  found.proven = found.proven && result.proven && time.iteration_s.has_value();
  if (!time.iteration_s) {
    found.diagnostics.push_back("plans with other levels of GPUs are left out: " + time.diagnostic);
    return;
  }
  std::optional<double>& planned_s = outcome.comparison.planned_s;
  if (planned_s) {
    // Within the tolerance, the one that gives up less.
    const planner::Coarseness had = planner::coarseness_of(request.problem, found.plan);
    const planner::Coarseness has = planner::coarseness_of(other, result.plan);
    const double slack = 1 + request.problem.tolerance;
    const double limit_s = has < had   ? *planned_s * slack
                           : had < has ? *planned_s / slack
                                       : *planned_s;
    if (*time.iteration_s > limit_s || (has == had && *time.iteration_s == *planned_s)) return;
  }
  result.evaluations = found.evaluations;
  result.complete = found.complete;
  result.proven = found.proven;
  result.diagnostics.push_back(costs::describe_levels(other.machines->cluster));
  found = std::move(result);
  planned_s = time.iteration_s;
  outcome.problem = &other;
}

/// Polishes the plan, and finds out what was asked about it.
void analyse(const Request& request, Outcome& outcome) {
  const Options& options = request.options;
  std::optional<double>& planned_s = outcome.comparison.planned_s;
  planner::SearchResult& found = outcome.found;
  if (!planned_s) {
    if (!options.analysis.any()) return;
    if (request.searches()) {
      found.diagnostics.push_back("the plan was not simulated, so nothing more is said of it");
      return;
    }
    throw io::InputError(fmt::format(
        "{}, so nothing can be said of it: take fewer nodes, or a larger --budget",
        found.diagnostics.empty() ? "this plan was not simulated" : found.diagnostics.back()));
  }
  const std::vector<planner::Baseline> none;
  const bool at_given_levels = outcome.problem == &request.problem;
  outcome.analysis = planner::analyse(
      options.analysis, *outcome.problem, request.search,
      {.plan = {found.plan, found.transfer_order, *planned_s},
       .search_s = outcome.search_s,
       .evaluations = found.evaluations,
       .finalists = found.finalists,
       .baselines = at_given_levels ? outcome.comparison.baselines : none,
       .rivals = planner::rivals_of(*outcome.problem, found.plan, outcome.comparison)});
  const planner::Analysis& analysis = outcome.analysis;
  found.plan = analysis.plan.plan;
  found.transfer_order = analysis.plan.transfer_order;
  found.diagnostics.insert(found.diagnostics.end(), analysis.diagnostics.begin(),
                           analysis.diagnostics.end());
  planned_s = analysis.plan.iteration_s;
}

/// Where compression saves no more than the tolerance, what is written compresses nothing.
void take_advised(const Request& request, Outcome& outcome) {
  Comparison& comparison = outcome.comparison;
  planner::SearchResult& found = outcome.found;
  const std::optional<planner::TimedPlan>& raw = comparison.raw;
  if (!request.optimises() || request.options.writes_fastest() || !raw) return;
  if (!comparison.uncompressed) return;
  if (!planner::compresses(request.model, found.plan)) return;
  if (!planner::may_be_plan(*outcome.problem, raw->plan)) return;
  const double saved = 1 - *comparison.planned_s / comparison.uncompressed->plan.iteration_s;
  if (saved > request.problem.tolerance) return;
  found.diagnostics.push_back(fmt::format(
      "the plan compresses nothing, as advised: the fastest that does would save {:.1f} % (--write "
      "fastest writes it)",
      100 * std::max(0.0, saved)));
  found.plan = raw->plan;
  found.transfer_order = raw->transfer_order;
  comparison.planned_s = raw->iteration_s;
}

/// Of all plans that the search could have returned, with GPUs at one level.
double bound(const planner::Problem& problem, std::optional<double> known_s) {
  constexpr std::size_t kBranchNodes = 30;  // tens of milliseconds for most models
  return planner::lower_bound(problem.model, *problem.machines, planner::choices_of(problem),
                              {.branch_nodes = kBranchNodes,
                               .known_s = known_s.value_or(0),
                               .stop = planner::stop_of(*problem.machines)})
      .seconds;
}

/// Of all of them; none, perhaps with the reason, where nothing is known.
std::optional<double> find_bound(const Request& request, std::optional<double> known_s,
                                 std::string& diagnostic) {
  if (!request.search.simulates || !request.searches()) return std::nullopt;
  const planner::Problem& problem = request.problem;
  if (const casync::Strategy* unknown =
          planner::strategy_without_bound(planner::choices_of(problem))) {
    diagnostic = fmt::format(
        "topology {} says nothing of what it costs at the least: no lower bound", unknown->name);
    return std::nullopt;
  }
  const double bound_s = bound(problem, known_s);
  return request.other ? std::min(bound_s, bound(request.other->problem(), known_s)) : bound_s;
}

/// Why plans cannot be simulated, since SeCoPa's formulas have costs for algorithms that no profile
/// has; empty: they can.
std::string missing_costs(const Request& request) {
  if (request.search.simulates || !request.searches()) return {};
  try {
    for (const std::string& name : request.problem.algorithms) request.profile.codec(name);
    return {};
  } catch (const io::InputError& error) {
    return fmt::format("nothing was simulated: {}", error.what());
  }
}

/// Finds out from which density on a plan that gathers sparse messages had better go dense; after
/// all else, since it takes some simulations.
void consider_dense(const Request& request, Outcome& outcome) {
  if (!request.searches() || !outcome.comparison.planned_s) return;
  planner::SearchResult& found = outcome.found;
  const std::optional<planner::BreakEven> break_even = planner::break_even(
      *outcome.problem, {found.plan, found.transfer_order, *outcome.comparison.planned_s});
  if (!break_even) return;
  outcome.analysis.dense = break_even->dense;
  const std::string& unknown = break_even->diagnostic;
  if (!unknown.empty()) {
    found.diagnostics.push_back("from which density on dense is faster is not known: " + unknown);
  }
  if (break_even->dense && !request.options.yaml()) {
    found.diagnostics.push_back(
        "from which density on the plan goes dense is only in a plan YAML: take --output X.yaml");
  }
}

/// Finds a plan, and whatever is to be known of it.
Outcome find(const Request& request) {
  Outcome outcome;
  const planner::Problem& problem = request.problem;
  outcome.problem = &problem;
  Stopwatch watch;
  const std::string missing = missing_costs(request);
  std::optional<planner::SearchResult> uncompressed;
  if (missing.empty()) {
    std::tie(outcome.found, uncompressed) = find_both(request, problem);
  } else {
    outcome.found =
        find_plan(request, problem, request.share_of_level() * request.share_of_search());
  }
  outcome.search_s = watch.seconds();
  planner::SearchResult& found = outcome.found;
  found.diagnostics.insert(found.diagnostics.end(), request.diagnostics.begin(),
                           request.diagnostics.end());
  Comparison& comparison = outcome.comparison;
  if (missing.empty()) {
    comparison = planner::compare_with_baselines(problem, found);
    consider_uncompressed(request, problem, uncompressed, outcome);
  } else {
    comparison.not_simulated = missing;
  }
  if (request.optimises()) planner::take_faster(problem, comparison, found);
  watch = {};
  if (request.other) search_other_levels(request, outcome);
  outcome.search_s += watch.seconds();
  const std::optional<double> least_found_s = comparison.planned_s;
  if (least_found_s && planner::may_compress(problem)) {
    planner::consider_compressed(*outcome.problem, problem,
                                 {found.plan, found.transfer_order, *least_found_s}, comparison);
  }
  if (comparison.planned_s) take_advised(request, outcome);
  std::optional<double> bound_s = least_found_s;
  std::string no_bound;
  const bool proven = found.proven;
  sim::run_parallel(2, problem.limits.jobs, [&](std::size_t i, unsigned) {
    if (i == 1) {
      if (!proven) bound_s = find_bound(request, least_found_s, no_bound);
      return;
    }
    if (request.optimises() && comparison.planned_s) {
      planner::add_responses_of_rivals(*outcome.problem, problem, comparison);
    }
    analyse(request, outcome);
  });
  comparison.lower_bound_s = bound_s;
  comparison.proved_optimal = proven && comparison.planned_s <= least_found_s;
  if (!no_bound.empty()) found.diagnostics.push_back(std::move(no_bound));
  planner::add_responses(*outcome.problem, problem,
                         {found.plan, found.transfer_order, comparison.planned_s.value_or(0)},
                         comparison);
  if (std::string said = planner::about_upper_end(*outcome.problem, found.plan, comparison);
      request.optimises() && !said.empty()) {
    found.diagnostics.push_back(std::move(said));
  }
  consider_dense(request, outcome);
  outcome.verdict = planner::judge(*outcome.problem, found.plan, comparison);
  planner::weaken(models::missing_times(request.model), outcome.verdict, comparison);
  if (request.options.times.compute_time.empty()) {
    const std::string other =
        planner::other_hardware(request.model.source, request.profile.hardware);
    outcome.verdict.sentence.insert(0, other);
  }
  return outcome;
}

/// Profile, links and compute time, and why this profile.
std::string machines_of(const Request& request, const planner::Problem& problem) {
  const bool given = !request.options.machines.profile.empty();
  const std::string machines =
      costs::describe_machines(request.profile, problem.machines->cluster, request.model);
  return given ? machines : fmt::format("{}; this profile {}", machines, costs::kWhyDefault);
}

/// Writes a plan that was searched, and prints what is known of it.
void finish(const Request& request, Outcome& outcome) {
  const Options& options = request.options;
  planner::SearchResult& found = outcome.found;
  if (io::InterruptScope::interrupted()) {
    found.diagnostics.push_back(found.complete
                                    ? "interrupted after the search: passes had less time"
                                    : "interrupted: this is the best plan so far");
  }
  if (request.searches()) {
    found.plan = planner::in_one_strategy(std::move(found.plan));
    add_replay_diagnostics(options, request.model, request.profile, found);
    write_plan(options, request.model, found, request.profile, outcome.comparison,
               outcome.analysis.dense);
  }
  for (const std::string& diagnostic : found.diagnostics) spdlog::info("{}", diagnostic);
  const planner::Problem& problem = *outcome.problem;
  const std::optional<models::Traced> traced = models::read_traced(options.input);
  if (options.json) {
    print_json(problem, found, outcome.search_s, outcome.comparison, outcome.verdict,
               outcome.analysis, traced);
    return;
  }
  fmt::print(std::cout, "{}\n", outcome.verdict.sentence);
  if (traced) fmt::print(std::cout, "{}\n", models::most_gain(*traced));
  fmt::print(std::cout, "{}\n", machines_of(request, problem));
  print_report(options, problem, found.plan);
  if (options.prints_times()) print_table(options, problem, request.profile, outcome.comparison);
  planner::print_analysis(std::cout, options.analysis, problem, outcome.analysis);
}

/// Whoever waits for long should know that what is found is not lost.
void announce(const Request& request) {
  constexpr double kLong_s = 30;
  const Options& options = request.options;
  if (options.evaluations || options.budget_s.value_or(0) < kLong_s) return;
  spdlog::info("searching; an interrupt ends the search with the best plan so far");
}

int run(const Options& options) {
  if (options.analysis.list_passes) {
    planner::print_passes(std::cout);
    return 0;
  }
  if (options.job == "broadcast") {
    planner::run_broadcast(options);
    return 0;
  }
  planner::refuse_broadcast_options(options.broadcast);
  sim::parse_network(options.network);  // refused even where nothing is simulated
  const Request request(options, planner::find_search(options.search_name()));
  // Other searches are soon done, and an interrupt ends the program.
  std::optional<io::InterruptScope> scope;
  if (request.optimises()) {
    scope.emplace();
    announce(request);
  }
  Outcome outcome = find(request);
  finish(request, outcome);
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
