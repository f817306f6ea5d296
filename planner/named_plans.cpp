#include "planner/named_plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "io/error.hpp"
#include "kernels/codec.hpp"
#include "planner/baselines.hpp"
#include "planner/passes/runner.hpp"
#include "planner/timeline_search.hpp"

namespace hipress::planner {
namespace {

constexpr std::string_view kBest = "best";
/// Those that need no machines.
constexpr std::array<std::string_view, 3> kByName = {"none", "fp16", "all"};

Problem problem_of(const PlanRequest& request) {
  Problem problem = {.model = request.model,
                     .strategy = request.strategy,
                     .nodes = request.machines.cluster.nodes,
                     .algorithms = {request.algorithm},
                     .profile = &request.machines.profile,
                     .machines = &request.machines,
                     .grouping = Grouping::kAny,
                     .limits = request.limits};
  if (request.algorithm != "fp16") problem.algorithms.emplace_back("fp16");
  return problem;
}

plans::ResolvedPlan resolved(casync::Plan plan, sim::TransferOrder order) {
  plans::ResolvedPlan result = {.plan = std::move(plan), .codecs = {}, .transfer_order = order};
  for (const casync::Algorithm& algorithm : result.plan.algorithms) {
    result.codecs.push_back(kernels::make_codec(algorithm.name));
  }
  return result;
}

plans::ResolvedPlan best(const PlanRequest& request) {
  const Problem problem = problem_of(request);
  SearchResult found = search_timeline(problem);
  const AffordableTime time =
      affordable_iteration(problem.model, found.plan, request.machines, found.transfer_order);
  if (!time.iteration_s) {
    throw io::InputError(fmt::format("plan best: {}; take fewer nodes", time.remark));
  }
  TimedPlan plan = {std::move(found.plan), found.transfer_order, *time.iteration_s};
  for (const BaselineRow& row : all_baselines()) {
    const Baseline baseline = simulate_baseline(row, problem, request.machines);
    if (!baseline.iteration_s || *baseline.iteration_s >= plan.iteration_s) continue;
    if (!may_be_plan(problem, baseline.plan)) continue;
    plan = {baseline.plan, sim::TransferOrder::kReady, *baseline.iteration_s};
  }
  plan = run_passes(problem, plan, {}).plan;
  return resolved(in_one_strategy(std::move(plan.plan)), plan.transfer_order);
}

}  // namespace

std::optional<plans::ResolvedPlan> named_plan(std::string_view name, const PlanRequest& request) {
  if (name == kBest) return best(request);
  const BaselineRow* row = find_baseline(name);
  if (!row || std::find(kByName.begin(), kByName.end(), name) != kByName.end()) return std::nullopt;
  Baseline baseline = simulate_baseline(*row, problem_of(request), request.machines);
  if (!baseline.iteration_s) {
    throw io::InputError(fmt::format("plan {}: {}", name, baseline.remark));
  }
  return resolved(std::move(baseline.plan), sim::TransferOrder::kReady);
}

std::string named_plans() {
  std::string names(kBest);
  for (const BaselineRow& row : all_baselines()) {
    if (std::find(kByName.begin(), kByName.end(), row.name) != kByName.end()) continue;
    names += ", " + std::string(row.name);
  }
  return names;
}

}  // namespace hipress::planner
