#include "planner/search/passes/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>

#include "casync/folding.hpp"
#include "casync/strategy.hpp"
#include "io/error.hpp"
#include "io/suggestion.hpp"
#include "plans/plan_builder.hpp"

namespace hipress::planner {
namespace {

constexpr double kMaxCheckedTasks = 200e3;  // of a graph that is expanded to be checked

constexpr std::array kPasses = {
    Pass{"scheme", "other bulk groups, batches or transfer order where that is faster",
         refine_scheme},
    Pass{"more_accurate",
         "raw, half precision or finer algorithms where that costs no more than --tolerance",
         more_accurate, true},
    Pass{"fewer_partitions", "smaller K where that costs nothing", fewer_partitions},
    Pass{"unused_algorithms", "algorithms that no gradient uses are dropped", unused_algorithms},
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

/// On the network asked for; none where the graph is too large.
std::optional<double> time_s(const Problem& problem, const TimedPlan& plan) {
  return affordable_iteration(problem.model, plan.plan, *problem.machines, plan.transfer_order)
      .iteration_s;
}

/// Runs one pass on `plan`.
PassReport run_pass(const Pass& pass, const PassContext& context, TimedPlan& plan,
                    std::vector<std::string>& warnings) {
  const auto start = std::chrono::steady_clock::now();
  PassReport report = {.name = std::string(pass.name), .iteration_before_s = plan.iteration_s};
  TimedPlan changed = pass.run(context, plan);
  report.changed = !same_plan(changed, plan);
  if (report.changed) {
    if (const std::string wrong = verify(context.problem, changed.plan); !wrong.empty()) {
      throw std::logic_error(fmt::format(
          "internal error: pass '{}' broke the plan: {}; leave it out with --disable-pass {}",
          pass.name, wrong, pass.name));
    }
    const std::optional<double> after_s = time_s(context.problem, changed);
    const double slack = pass.for_accuracy ? context.problem.tolerance : 0;
    if (after_s && *after_s <= plan.iteration_s * (1 + slack)) {
      plan = std::move(changed);
      plan.iteration_s = *after_s;
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

PolishedPlan run_passes(const Problem& problem, const TimedPlan& plan,
                        const std::vector<std::string>& disabled, const TimedPlan* uncompressed,
                        std::span<const Pass> rows) {
  PolishedPlan polished = {.plan = plan, .reports = {}, .warnings = {}};
  Budget budget(problem.limits);
  std::size_t ran = 0;
  const SimulationBudget* simulations = problem.machines->budget.get();
  for (const Pass& pass : rows) {
    if (budget.interrupted() || (simulations && simulations->over())) break;
    ++ran;
    if (std::find(disabled.begin(), disabled.end(), pass.name) != disabled.end()) continue;
    const PassContext context = {
        problem, budget, static_cast<double>(ran) / static_cast<double>(rows.size()), uncompressed};
    polished.reports.push_back(run_pass(pass, context, polished.plan, polished.warnings));
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
    throw io::InputError(fmt::format("unknown pass {}{}; --list-passes says what they do",
                                     io::quote(name), io::suggestion(name, known)));
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
