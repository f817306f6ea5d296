#include "planner/baselines/named_plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "casync/topology.hpp"
#include "io/error.hpp"
#include "kernels/codec/codec.hpp"
#include "planner/baselines/baselines.hpp"
#include "planner/problem/budget.hpp"
#include "planner/problem/levels.hpp"
#include "planner/rules/secopa_costs.hpp"
#include "planner/search/passes/runner.hpp"
#include "planner/search/timeline_search.hpp"

namespace hipress::planner {
namespace {

/// Plans that do not depend on machines, which plans::resolve_plan() makes.
constexpr std::array<std::string_view, 3> kByName = {"none", "fp16", "all"};
/// Plans that named_plan() makes, and that are the same on all machines.
constexpr std::array<std::string_view, 4> kFixed = {"threshold_262144", "ddp", "ddp_fp16",
                                                    "ddp_powersgd"};

template <class Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Problem of a request; `on_link` is the profile for SeCoPa's formulas.
Problem problem_of(const PlanRequest& request, const costs::Profile& on_link) {
  Problem problem = {.model = request.model,
                     .topology = request.topology,
                     .nodes = request.machines.cluster.nodes,
                     .algorithms = {request.algorithm},
                     .profile = &on_link,
                     .machines = &request.machines,
                     .grouping = Grouping::kAny,
                     .limits = request.limits};
  const bool knows_fp16 = request.machines.profile.codecs.contains("fp16");
  if (request.algorithm != "fp16" && knows_fp16) problem.algorithms.emplace_back("fp16");
  return problem;
}

plans::ResolvedPlan resolved(casync::Plan plan, sim::TransferOrder order) {
  plans::ResolvedPlan result = {.plan = std::move(plan), .codecs = {}, .transfer_order = order};
  for (const casync::Algorithm& algorithm : result.plan.algorithms) {
    result.codecs.push_back(kernels::make_codec(algorithm.name));
  }
  return result;
}

/// The fastest of `plan` and the baselines that may_be_plan() allows.
TimedPlan or_baseline(const Problem& problem, TimedPlan plan) {
  const std::vector<Baseline> all = simulate_baselines(problem, *problem.machines);
  const Baseline* const faster = faster_baseline(problem, all, plan.iteration_s);
  return faster == nullptr ? std::move(plan)
                           : TimedPlan{faster->plan, faster->transfer_order, *faster->iteration_s};
}

/// The fastest of a search's plan, the baselines, and `other` if given, after the passes.
TimedPlan fastest(const Problem& problem, const TimedPlan* other = nullptr) {
  SearchResult found = search_timeline(problem);
  const AffordableTime time =
      affordable_iteration(problem.model, found.plan, *problem.machines, found.transfer_order);
  if (!time.iteration_s) {
    throw io::InputError(
        fmt::format("no plan can be searched: {}; take fewer nodes", time.diagnostic));
  }
  TimedPlan plan =
      or_baseline(problem, {std::move(found.plan), found.transfer_order, *time.iteration_s});
  if (other != nullptr && other->iteration_s <= plan.iteration_s) plan = *other;
  return run_passes(problem, plan, {}, {.uncompressed = other}).plan;
}

TimedPlan best_uncompressed(Problem problem) {
  problem.algorithms.clear();
  return fastest(problem);
}

TimedPlan best(const Problem& problem) {
  const TimedPlan raw = best_uncompressed(problem);
  const bool nothing = sends_raw_alone(problem.topology) && !may_compress(problem);
  return nothing ? raw : fastest(problem, &raw);
}

plans::ResolvedPlan searched(std::string_view name, Problem problem) {
  problem.limits = share_of(problem.limits, 0.5);
  TimedPlan plan = name == kBest ? best(problem) : best_uncompressed(problem);
  return resolved(in_one_topology(std::move(plan.plan)), plan.transfer_order);
}

/// The baseline's plan, with the best of its topologies.
casync::Plan baseline_plan(const BaselineRow& row, const Problem& problem) {
  const std::vector<std::string> topologies = topologies_of(problem, row);
  if (topologies.size() == 1 && !row.grouped) {
    Problem one = problem;
    one.topology = topologies.front();
    if (!row.is_collective()) return row.make(one);
    std::optional<costs::Cluster> flat = as_collectives_see(*problem.machines);
    if (!flat) return row.make(one);
    return row.make(OtherLevels(one, *problem.machines, *std::move(flat)).problem());
  }
  Baseline baseline = simulate_baseline(row, problem, *problem.machines);
  if (!baseline.iteration_s) {
    throw io::InputError(fmt::format("plan {}: {}", row.name, baseline.diagnostic));
  }
  return std::move(baseline.plan);
}

}  // namespace

std::optional<plans::ResolvedPlan> named_plan(std::string_view name, const PlanRequest& request) {
  if (!is_named_plan(name)) return std::nullopt;
  if (request.topology != kBest &&
      casync::find_topology(request.topology).operation != casync::Operation::kMean) {
    throw io::InputError(fmt::format(
        "plan {} averages gradients, and topology {} broadcasts: take none, an algorithm, or the "
        "YAML of hipress-plan `job` broadcast",
        name, request.topology));
  }
  const costs::Profile on_link =
      profile_on_link(request.machines.profile, request.machines.cluster.link);
  const Problem problem = problem_of(request, on_link);
  if (is_searched(name)) return searched(name, problem);
  casync::Plan made = baseline_plan(*find_baseline(name), problem);
  if (made.decisions.empty()) {
    throw io::InputError(
        fmt::format("plan {} makes no sense here: {} needs {}", name, find_baseline(name)->title,
                    name.ends_with("bf16") || name.ends_with("mixed")
                        ? "parameters in fp32, and for HSDP several hosts of as many GPUs each"
                        : "several hosts of as many GPUs each"));
  }
  return resolved(std::move(made), sim::TransferOrder::kReady);
}

bool is_searched(std::string_view name) { return name == kBest || name == kBestUncompressed; }

bool is_named_plan(std::string_view name) {
  return is_searched(name) || (find_baseline(name) != nullptr && !contains(kByName, name));
}

JobKind kind_of_named_plan(std::string_view name) {
  const BaselineRow* const row = is_named_plan(name) ? find_baseline(name) : nullptr;
  return row == nullptr ? JobKind::kAveraging : row->kind;
}

std::vector<NamedPlanRow> named_plan_rows() {
  std::vector<NamedPlanRow> rows = {
      {kBest,
       "the fastest plan found, with the algorithm, fp16 or nothing, with or without groups"},
      {kBestUncompressed,
       "the fastest plan found without compression under the topology; ddp may be faster, since "
       "its all-reduce does not use the topology"}};
  for (const BaselineRow& row : all_baselines()) {
    if (contains(kByName, row.name)) continue;
    rows.push_back({row.name, row.help, !contains(kFixed, row.name)});
  }
  return rows;
}

std::string named_plans() {
  std::string names;
  for (const NamedPlanRow& row : named_plan_rows()) {
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  return names;
}

plans::ResolvedPlan resolve_plan(const std::string& path_or_name, const plans::PlanContext& context,
                                 const Machines& machines, std::int64_t evaluations) {
  std::optional<plans::ResolvedPlan> plan = named_plan(
      path_or_name, {.model = context.model,
                     .topology = context.topology == kBest
                                     ? std::string(kBest)
                                     : std::string(casync::find_topology(context.topology).name),
                     .algorithm = context.algorithm,
                     .machines = machines,
                     .limits = {.evaluations = evaluations}});
  if (plan) return std::move(*plan);
  plans::PlanContext with_names = context;
  with_names.other_names = named_plans();
  return plans::resolve_plan(path_or_name, with_names);
}

}  // namespace hipress::planner
