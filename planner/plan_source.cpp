#include "planner/plan_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "io/error.hpp"
#include "io/memory.hpp"
#include "io/processors.hpp"
#include "kernels/codec.hpp"
#include "planner/baselines.hpp"
#include "planner/budget.hpp"
#include "planner/secopa_costs.hpp"
#include "planner/timeline_search.hpp"

namespace hipress::planner {
namespace {

/// That plans::resolve_plan() makes.
constexpr std::array<std::string_view, 3> kResolved = {"none", "fp16", "all"};
/// Those that are the same on all machines.
constexpr std::array<std::string_view, 3> kFixed = {"threshold_262144", "ddp", "ddp_fp16"};

template <class Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// What `best` may compress with: the algorithm that is asked for, and a cast where its costs are
/// known.
std::vector<std::string> allowed(const sim::PlanningTask& task) {
  std::vector<std::string> names = {task.algorithm};
  if (task.algorithm != "fp16" && task.profile.codecs.contains("fp16")) names.push_back("fp16");
  return names;
}

plans::ResolvedPlan with_codecs(casync::Plan plan) {
  plans::ResolvedPlan resolved{.plan = std::move(plan), .codecs = {}};
  for (const casync::Algorithm& algorithm : resolved.plan.algorithms) {
    resolved.codecs.push_back(kernels::make_codec(algorithm.name));
  }
  return resolved;
}

/// Keeps the faster one of two plans; those that cannot be simulated are left out.
class Fastest {
 public:
  explicit Fastest(const Problem& problem) : problem_(problem) {}

  void consider(casync::Plan plan) {
    keep(plan, affordable_iteration(problem_.model, plan, *problem_.machines).iteration_s);
  }
  void keep(const casync::Plan& plan, std::optional<double> iteration_s) {
    if (!iteration_s || (plan_ && *iteration_s >= iteration_s_)) return;
    plan_ = plan;
    iteration_s_ = *iteration_s;
  }
  std::optional<casync::Plan> take() { return std::move(plan_); }

 private:
  const Problem& problem_;
  std::optional<casync::Plan> plan_;
  double iteration_s_ = 0;
};

/// None where the strategy of the baseline cannot carry the model.
std::optional<casync::Plan> baseline_plan(const BaselineRow& row, const Problem& problem) {
  const std::vector<std::string> strategies = strategies_of(problem, row);
  if (strategies.empty()) return std::nullopt;
  if (strategies.size() == 1 && !row.grouped) {
    Problem one = problem;
    one.strategy = strategies.front();
    return row.make(one);
  }
  Baseline baseline = simulate_baseline(row, problem, *problem.machines);
  if (baseline.plan.decisions.empty()) return std::nullopt;
  return std::move(baseline.plan);
}

std::optional<plans::ResolvedPlan> make(const sim::PlanningTask& task) {
  const Machines machines{.profile = task.profile,
                          .cluster = task.cluster,
                          .network = task.network,
                          .memory_bytes = static_cast<double>(io::available_memory()) /
                                          static_cast<double>(io::usable_cores().size())};
  const costs::Profile on_link = profile_on_link(task.profile, task.cluster.link);
  Problem problem = {.model = task.model,
                     .strategy = task.strategy,
                     .nodes = task.cluster.nodes,
                     .algorithms = allowed(task),
                     .profile = &on_link,
                     .machines = &machines,
                     .grouping = Grouping::kAny,
                     .limits = {.evaluations = task.evaluations}};
  if (task.name == kBestUncompressed) problem.algorithms.clear();
  if (task.name == kBest || task.name == kBestUncompressed) return with_codecs(best_plan(problem));
  problem.algorithms = {task.algorithm};
  const BaselineRow* row = find_baseline(task.name);
  if (row == nullptr) return std::nullopt;
  std::optional<casync::Plan> plan = baseline_plan(*row, problem);
  if (!plan) return std::nullopt;
  return with_codecs(std::move(*plan));
}

}  // namespace

casync::Plan best_plan(const Problem& problem) {
  Problem half = problem;
  half.limits = share_of(problem.limits, 0.5);
  Fastest fastest(problem);
  if (!problem.algorithms.empty()) fastest.consider(search_timeline(half).plan);
  half.algorithms.clear();
  fastest.consider(search_timeline(half).plan);
  for (const Baseline& baseline : simulate_baselines(problem, *problem.machines)) {
    if (may_be_plan(problem, baseline.plan)) fastest.keep(baseline.plan, baseline.iteration_s);
  }
  std::optional<casync::Plan> plan = fastest.take();
  if (!plan) {
    throw io::InputError(
        "every plan's graph is too large to simulate: give fewer nodes, or a plan file");
  }
  return in_one_strategy(std::move(*plan));
}

plans::ResolvedPlan resolve_plan(const std::string& path_or_name, const plans::PlanContext& context,
                                 const PlanMachines& machines) {
  const sim::PlanSource source = plan_source();
  if (source.find(path_or_name) == nullptr) {
    plans::PlanContext named = context;
    for (const sim::PlannedName& row : source.names) named.other_names.push_back(row.name);
    return plans::resolve_plan(path_or_name, named);
  }
  std::optional<plans::ResolvedPlan> resolved = make({.name = path_or_name,
                                                      .model = context.model,
                                                      .strategy = context.strategy,
                                                      .algorithm = context.algorithm,
                                                      .profile = machines.profile,
                                                      .cluster = machines.cluster,
                                                      .network = machines.network,
                                                      .evaluations = machines.evaluations});
  if (resolved) return std::move(*resolved);
  throw io::InputError(fmt::format("--plan {}: there is no such plan for --topology {}",
                                   path_or_name, context.strategy));
}

sim::PlanSource plan_source() {
  sim::PlanSource source;
  source.plan = make;
  source.names.push_back(
      {kBest, "the fastest that is found, with --algorithm, fp16 or nothing, in groups or not"});
  source.names.push_back({kBestUncompressed, "the fastest that is found without compression"});
  for (const BaselineRow& row : all_baselines()) {
    if (contains(kResolved, row.name)) continue;
    source.names.push_back({row.name, row.help, !contains(kFixed, row.name)});
  }
  return source;
}

bool is_made(std::string_view name) { return plan_source().find(name) != nullptr; }

std::vector<std::string_view> baseline_names() {
  std::vector<std::string_view> names;
  for (const sim::PlannedName& row : plan_source().names) {
    if (row.name != kBest && row.name != kBestUncompressed) names.push_back(row.name);
  }
  return names;
}

}  // namespace hipress::planner
