// hipress-plan: decides per gradient whether to compress it, and into how many partitions. Without
// a profile it does what SeCoPa.py did, from the same options to the same file.

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "costs/levels.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/quantity.hpp"
#include "io/tool.hpp"
#include "planner/bound.hpp"
#include "planner/budget.hpp"
#include "planner/choices.hpp"
#include "planner/command_report.hpp"
#include "planner/levels.hpp"
#include "planner/secopa_costs.hpp"
#include "plans/plan_file.hpp"

namespace {

using namespace hipress;
using planner::Comparison;
using planner::Options;

constexpr const char* kPublishedProfile = "sosp21";
constexpr double kShareOfLevels = 0.5;  // of the budget, where GPUs can be at one of two levels

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Set by the first interrupt; the second one ends the program.
std::atomic<bool> interrupted = false;

void interrupt(int) {
  interrupted = true;
  std::signal(SIGINT, SIG_DFL);
}

/// The plan that is given may be for the cluster with its GPUs at another level.
costs::Cluster for_plan(const costs::Cluster& cluster, const std::string& plan) {
  return costs::with_nodes(cluster, plans::nodes_of_plan(plan).value_or(cluster.nodes));
}

/// Simulates the plan and the baselines.
Comparison compare(const planner::Problem& problem, planner::SearchResult& found) {
  const planner::Machines& machines = *problem.machines;
  const planner::AffordableTime time =
      planner::affordable_iteration(problem.model, found.plan, machines, found.transfer_order);
  Comparison comparison = {.planned_s = time.iteration_s,
                           .baselines = planner::simulate_baselines(problem, machines),
                           .lower_bound_s = {}};
  if (!time.remark.empty()) found.remarks.push_back("this plan: " + time.remark);
  for (const planner::Baseline& baseline : comparison.baselines) {
    if (!baseline.remark.empty()) {
      found.remarks.push_back(fmt::format("{}: {}", baseline.name, baseline.remark));
    }
  }
  return comparison;
}

/// A search that optimises must not be worse than the baselines: else the best of them is its
/// result.
void take_faster_baseline(const planner::Problem& problem, Comparison& comparison,
                          planner::SearchResult& found) {
  if (!comparison.planned_s) return;
  const planner::Baseline* faster =
      planner::faster_baseline(problem, comparison.baselines, *comparison.planned_s);
  if (!faster) return;
  found.remarks.push_back(
      fmt::format("the plan is baseline {}, which the search did not improve on", faster->name));
  found.plan = faster->plan;
  found.transfer_order = sim::TransferOrder::kReady;
  comparison.planned_s = faster->iteration_s;
}

/// Polishes the plan, and finds out what was asked about it.
planner::Analysis analyse(const Options& options, const planner::Problem& problem,
                          const planner::SearchRow& search, double search_s,
                          const std::vector<planner::Baseline>& baselines, Comparison& comparison,
                          planner::SearchResult& found) {
  if (!comparison.planned_s) {
    if (!options.analysis.any()) return {};
    throw io::InputError(
        "this plan's graph is too large to simulate, so nothing can be said of it: "
        "take fewer nodes");
  }
  planner::Analysis analysis =
      planner::analyse(options.analysis, problem, search,
                       {.plan = {found.plan, found.transfer_order, *comparison.planned_s},
                        .search_s = search_s,
                        .evaluations = found.evaluations,
                        .finalists = found.finalists,
                        .baselines = baselines});
  found.plan = analysis.plan.plan;
  found.transfer_order = analysis.plan.transfer_order;
  found.remarks.insert(found.remarks.end(), analysis.remarks.begin(), analysis.remarks.end());
  comparison.planned_s = analysis.plan.iteration_s;
  return analysis;
}

/// Of all plans that the search could have returned.
double bound(const planner::Problem& problem, std::optional<double> known_s) {
  constexpr std::size_t kBranchNodes = 30;  // tens of milliseconds for most models
  return planner::lower_bound(problem.model, *problem.machines, planner::choices_of(problem),
                              {.branch_nodes = kBranchNodes, .known_s = known_s.value_or(0)})
      .seconds;
}

/// A bar on terminals only.
void show_progress(double share, double best_s) {
  constexpr int kWidth = 30;
  const int done = static_cast<int>(share * kWidth);
  fmt::print(stderr, "\r[{:=<{}}{:<{}}] best {:>10} ", "", done, "", kWidth - done,
             io::format_duration(best_s));
}

/// Searches a plan with a share of the budget, or reads the one that is given.
planner::SearchResult find_plan(const Options& options, const planner::SearchRow& search,
                                const planner::Problem& problem, double share) {
  if (!options.analysis.plan.empty()) {
    planner::TimedPlan given = planner::read_plan(
        options.analysis.plan, problem, topology_of(options, search), options.analysis.order);
    return {.plan = std::move(given.plan), .remarks = {}, .transfer_order = given.transfer_order};
  }
  // Other searches are soon done, and an interrupt ends the program.
  if (search.optimises) std::signal(SIGINT, interrupt);
  planner::Problem limited = problem;
  limited.limits =
      planner::share_of(planner::limits_of_search(options.analysis, problem.limits), share);
  planner::SearchResult found = search.search(limited);
  if (problem.limits.progress) fmt::print(stderr, "\n");
  return found;
}

/// Searches with the GPUs at another level; whether that plan is faster, and `found` then.
bool found_in_other_levels(const Options& options, const planner::SearchRow& search,
                           const planner::Problem& other, Comparison& comparison,
                           planner::SearchResult& found) {
  planner::SearchResult result = find_plan(options, search, other, kShareOfLevels);
  const planner::AffordableTime time = planner::affordable_iteration(
      other.model, result.plan, *other.machines, result.transfer_order);
  found.evaluations += result.evaluations;
  found.complete = found.complete && result.complete;
  if (!time.iteration_s) {
    found.remarks.push_back("plans with other levels of GPUs are left out: " + time.remark);
    return false;
  }
  if (comparison.planned_s && *time.iteration_s >= *comparison.planned_s) return false;
  result.evaluations = found.evaluations;
  result.complete = found.complete;
  result.remarks.push_back(costs::describe_levels(other.machines->cluster));
  found = std::move(result);
  comparison.planned_s = time.iteration_s;
  return true;
}

int run(const Options& options) {
  if (options.analysis.list_passes) {
    planner::print_passes(std::cout);
    return 0;
  }
  const sim::Network network = sim::parse_network(options.network);
  const planner::SearchRow& search = planner::find_search(options.search_name());
  const models::Model model = models::read_model(options.input);
  planner::Problem problem = problem_of(options, search, model);
  problem.limits.interrupted = &interrupted;
  problem.choices = search.choices;
  if (isatty(STDERR_FILENO) != 0) problem.limits.progress = show_progress;
  warn_of_unused(options, search);
  const bool searches = options.analysis.plan.empty();

  costs::Profile profile, secopa_profile;
  costs::Cluster cluster;
  std::optional<planner::Machines> machines;
  if (options.simulates() || search.simulates) {
    profile = costs::read_profile(options.profile.empty() ? kPublishedProfile : options.profile);
    cluster = options.cluster.empty()
                  ? costs::cluster_from_profile(profile, problem.nodes)
                  : costs::read_cluster(options.cluster, profile, options.nodes);
    if (!searches) cluster = for_plan(cluster, options.analysis.plan);
    problem.nodes = cluster.nodes;
    secopa_profile = planner::profile_on_link(profile, cluster.link);
    if (!options.profile.empty()) problem.profile = &secopa_profile;
    machines.emplace(planner::Machines{profile, cluster, network});
    problem.machines = &*machines;
  }
  planner::check(options.analysis, problem, search);
  if (searches) io::require_writable(options.output);

  std::vector<std::string> remarks;
  std::unique_ptr<const planner::OtherLevels> other;
  if (search.optimises && searches && problem.strategy == "best" && options.yaml()) {
    other = planner::OtherLevels::of(problem, remarks);
  }

  Stopwatch watch;
  planner::SearchResult found = find_plan(options, search, problem, other ? kShareOfLevels : 1);
  double search_s = watch.seconds();
  found.remarks.insert(found.remarks.end(), remarks.begin(), remarks.end());

  std::optional<Comparison> comparison;
  planner::Analysis analysis;
  const planner::Problem* chosen = &problem;
  if (machines) {
    comparison = compare(problem, found);
    if (search.optimises && searches) take_faster_baseline(problem, *comparison, found);
    watch = {};
    if (other && found_in_other_levels(options, search, other->problem(), *comparison, found)) {
      chosen = &other->problem();
    }
    search_s += watch.seconds();
    const std::vector<planner::Baseline> none;
    analysis = analyse(options, *chosen, search, search_s,
                       chosen == &problem ? comparison->baselines : none, *comparison, found);
  }
  if (comparison && search.simulates && searches) {
    comparison->lower_bound_s = bound(problem, comparison->planned_s);
    if (other) {
      comparison->lower_bound_s =
          std::min(*comparison->lower_bound_s, bound(other->problem(), comparison->planned_s));
    }
  }
  if (interrupted) {
    found.remarks.push_back(found.complete ? "interrupted after the search: passes had less time"
                                           : "interrupted: this is the best plan so far");
  }
  if (searches) {
    found.plan = planner::in_one_strategy(std::move(found.plan));
    add_replay_remarks(options, profile, found);
    write_plan(options, model, found, profile, comparison);
  }
  for (const std::string& remark : found.remarks) spdlog::info("{}", remark);
  if (options.json) {
    print_json(*chosen, found, search_s, *comparison, analysis);
    return 0;
  }
  print_report(options, *chosen, found.plan);
  if (comparison) print_table(options, *chosen, profile, *comparison);
  planner::print_analysis(std::cout, options.analysis, *chosen, analysis);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const io::ToolInfo info = {
      .name = "hipress-plan",
      .purpose = "Decides which gradients to compress, and into how many partitions to cut them.",
      .example = "hipress-plan --input vgg19_gradients.txt --topology PS --nnodes 16"};
  return io::run_tool(
      argc, argv, info, [&](CLI::App& app) { declare_options(app, options); },
      [&] { return run(options); });
}
