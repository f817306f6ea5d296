#include "planner/search/passes/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>

#include "casync/folding.hpp"
#include "casync/topology.hpp"
#include "io/error.hpp"
#include "io/suggestion.hpp"
#include "planner/timing/forecast.hpp"
#include "plans/plan_builder.hpp"

namespace hipress::planner {
namespace {

constexpr double kMaxCheckedTasks = 200e3;  // largest graph that is expanded for a check

constexpr std::array kPasses = {
    Pass{"scheme", "other bulk groups, batches or transfer order if that is faster", refine_scheme},
    Pass{"fewer_encodings",
         "a topology that encodes less often on the way if that costs no more than `tolerance`",
         fewer_encodings, true},
    Pass{"lower_upper_end",
         "a 90th percentile no higher than any baseline's, if the iteration is no longer",
         lower_upper_end, true},
    Pass{"more_accurate",
         "raw, half precision or finer algorithms if that costs no more than `tolerance`",
         more_accurate, true},
    Pass{"fewer_partitions", "smaller K if that costs nothing", fewer_partitions},
    Pass{"unused_algorithms", "removal of algorithms that no gradient uses", unused_algorithms},
};

std::string verify_decisions(const Problem& problem, const casync::Plan& plan) {
  const std::vector<models::Gradient>& gradients = problem.model.gradients;
  if (plan.decisions.size() != gradients.size()) {
    return fmt::format("it decides on {} gradients of {}", plan.decisions.size(), gradients.size());
  }
  if (plan.nodes != problem.nodes) return fmt::format("it is for {} nodes", plan.nodes);
  for (std::size_t g = 0; g < gradients.size(); ++g) {
    const casync::Decision& decision = plan.decisions[g];
    const auto algorithms = static_cast<std::int64_t>(plan.algorithms.size());
    if (decision.algorithm < casync::kRaw || decision.algorithm >= algorithms) {
      return fmt::format("gradient {} has algorithm {} of {}", io::quote(gradients[g].name),
                         decision.algorithm, algorithms);
    }
    if (decision.partitions < 1 || decision.partitions > plans::kMaxPartitions) {
      return fmt::format("gradient {} has K = {}", io::quote(gradients[g].name),
                         decision.partitions);
    }
  }
  return "";
}

/// Simulated time on the requested network, in seconds; unset if the graph is too large.
std::optional<double> plan_time_s(const Problem& problem, const TimedPlan& plan) {
  return affordable_iteration(problem.model, plan.plan, *problem.machines, plan.transfer_order)
      .iteration_s;
}

/// Runs one pass on `plan`, and keeps the result if it is within the ceiling.
PassReport run_pass(const Pass& pass, const PassContext& context, TimedPlan& plan,
                    std::vector<std::string>& warnings) {
  const auto start = std::chrono::steady_clock::now();
  PassReport report = {.name = std::string(pass.name),
                       .iteration_before_s = plan.iteration_s,
                       .ceiling = context.ceiling(plan, pass.for_accuracy)};
  TimedPlan changed = pass.run(context, plan);
  report.changed = !same_plan(changed, plan);
  if (report.changed) {
    if (const std::string wrong = verify(context.problem, changed.plan); !wrong.empty()) {
      throw std::logic_error(fmt::format(
          "internal error: pass '{}' broke the plan: {}; leave it out with `disable_pass` {}",
          pass.name, wrong, pass.name));
    }
    const std::optional<double> after_s = plan_time_s(context.problem, changed);
    changed.iteration_s = after_s.value_or(0);
    if (after_s && report.ceiling.upper_s && !changed.upper_s) {
      changed.upper_s = upper_end_s(context.problem, changed);
    }
    if (after_s && is_within(report.ceiling, changed)) {
      plan = std::move(changed);
    } else {
      warnings.push_back(fmt::format(
          "pass '{}' {} and was undone", pass.name,
          after_s ? "made the plan slower" : "made a plan that the budget left no time to check"));
      report.changed = false;
    }
  }
  report.iteration_after_s = plan.iteration_s;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace

std::span<const Pass> passes() { return kPasses; }

Ceiling PassContext::ceiling(const TimedPlan& plan, bool for_accuracy) const {
  Ceiling ceiling = {plan.iteration_s, plan.upper_s};
  if (!for_accuracy) return ceiling;
  const double slack = 1 + problem.tolerance;
  const auto longest = [&](double own_s, double allowed_s, std::optional<double> rival_s) {
    return std::max(own_s, std::min(allowed_s, rival_s.value_or(allowed_s)));
  };
  std::optional<double> iteration_s, upper_s;
  for (const TimedPlan& rival : rivals.others) {
    iteration_s = std::min(iteration_s.value_or(rival.iteration_s), rival.iteration_s);
    if (rival.upper_s) upper_s = std::min(upper_s.value_or(*rival.upper_s), *rival.upper_s);
  }
  const double tolerated_s = (fastest_s > 0 ? fastest_s : plan.iteration_s) * slack;
  ceiling.iteration_s = longest(plan.iteration_s, tolerated_s, iteration_s);
  if (plan.upper_s) ceiling.upper_s = longest(*plan.upper_s, *plan.upper_s * slack, upper_s);
  return ceiling;
}

bool is_within(const Ceiling& ceiling, const TimedPlan& plan) {
  constexpr double kRounding = 1 + 1e-9;  // for rounding of an upper end, which is a sum of shares
  if (plan.iteration_s > ceiling.iteration_s) return false;
  return !ceiling.upper_s || !plan.upper_s || *plan.upper_s <= *ceiling.upper_s * kRounding;
}

std::optional<TimedPlan> fitting(const Ceiling& ceiling, const PassContext& context,
                                 Workbench& bench, const Candidate& candidate) {
  const std::optional<double> plan_time_s = bench.time_s(candidate);
  context.budget.count(1);
  if (!plan_time_s || *plan_time_s > ceiling.iteration_s) return std::nullopt;
  TimedPlan plan = bench.timed(candidate, *plan_time_s);
  if (ceiling.upper_s) {
    plan.upper_s = upper_end_s(context.problem, plan);
    context.budget.count(2);
  }
  if (!is_within(ceiling, plan)) return std::nullopt;
  return plan;
}

PolishedPlan run_passes(const Problem& problem, const TimedPlan& plan,
                        const std::vector<std::string>& disabled, const Rivals& rivals,
                        std::span<const Pass> rows) {
  PolishedPlan polished = {.plan = plan, .reports = {}, .warnings = {}};
  Budget budget(problem.limits);
  if (!polished.plan.upper_s && !budget.over()) {
    polished.plan.upper_s = upper_end_s(problem, polished.plan);
    budget.count(2);
  }
  double fastest_s = plan.iteration_s;
  std::size_t ran = 0;
  const SimulationBudget* simulations = problem.machines->budget.get();
  for (const Pass& pass : rows) {
    if (budget.interrupted() || (simulations && simulations->over())) break;
    ++ran;
    if (std::find(disabled.begin(), disabled.end(), pass.name) != disabled.end()) continue;
    const PassContext context = {problem, budget,
                                 static_cast<double>(ran) / static_cast<double>(rows.size()),
                                 rivals, fastest_s};
    polished.reports.push_back(run_pass(pass, context, polished.plan, polished.warnings));
    fastest_s = std::min(fastest_s, polished.plan.iteration_s);
  }
  return polished;
}

std::vector<std::string> parse_pass_names(const std::string& text) {
  std::vector<std::string_view> known;
  for (const Pass& pass : kPasses) known.push_back(pass.name);
  std::vector<std::string> names(1);
  for (const char c : text) {
    if (c == ',') {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw io::InputError(
        fmt::format("unknown pass {}{}", io::quote(name), io::suggestion(name, known)));
  }
  return names;
}

std::string verify(const Problem& problem, const casync::Plan& plan) {
  if (std::string wrong = verify_decisions(problem, plan); !wrong.empty()) return wrong;
  try {
    if (casync::whole_tasks(problem.model, plan) <= kMaxCheckedTasks) {
      casync::check(casync::expand(problem.model, plan));
    }
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace hipress::planner
