#include "planner/advice/analysis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/error.hpp"
#include "io/yaml.hpp"
#include "kernels/codec/codec.hpp"
#include "plans/plan_file.hpp"

namespace hipress::planner {
namespace {

std::vector<std::string> disabled(const AnalysisOptions& options) {
  if (options.disabled_passes.empty()) return {};
  return parse_pass_names(options.disabled_passes);
}

Uncertainty uncertainty_of(const AnalysisOptions& options, const Problem& problem) {
  Uncertainty uncertainty = {.bandwidth = options.bandwidth_uncertainty.value_or(0),
                             .replicas = options.replicas.value_or(Uncertainty{}.replicas),
                             .seed = problem.limits.seed};
  if (!options.jitter.empty()) {
    uncertainty.jitter = std::make_shared<const sim::Jitter>(sim::Jitter::parse(options.jitter));
  }
  return uncertainty;
}

/// Limits of the passes: what the search left of its budget, plus kPassAllowance.
Limits limits_of_passes(const Limits& limits, const Found& found) {
  Limits left = limits;
  left.progress = {};
  left.budget_s =
      std::max(0.0, limits.budget_s - found.search_s) + kPassAllowance * limits.budget_s;
  if (limits.evaluations >= 0) {
    left.evaluations =
        std::max<std::int64_t>(0, limits.evaluations - found.evaluations) +
        static_cast<std::int64_t>(kPassAllowance * static_cast<double>(limits.evaluations));
  }
  return left;
}

void polish(const AnalysisOptions& options, const Problem& problem, const Found& found,
            Analysis& analysis) {
  Problem limited = problem;
  limited.limits = limits_of_passes(limits_of_search(options, problem.limits), found);
  PolishedPlan polished = run_passes(limited, analysis.plan, disabled(options), found.rivals);
  analysis.plan = std::move(polished.plan);
  analysis.passes = std::move(polished.reports);
  analysis.warnings = std::move(polished.warnings);
}

void make_robust(const AnalysisOptions& options, const Problem& problem, const SearchRow& search,
                 const Found& found, Analysis& analysis) {
  const Uncertainty uncertainty = uncertainty_of(options, problem);
  std::vector<RobustCandidate> others = {{"search", found.plan}};
  for (const SearchResult::Finalist& finalist : found.finalists) {
    others.push_back(
        {fmt::format("finalist {}", others.size()), {finalist.plan, finalist.transfer_order, 0}});
  }
  for (const Baseline& baseline : found.baselines) {
    if (!may_be_plan(problem, baseline.plan)) continue;
    others.push_back(
        {std::string(baseline.name),
         {baseline.plan, sim::TransferOrder::kReady, baseline.iteration_s.value_or(0)}});
  }
  analysis.robust = choose_robust(
      problem, robust_candidates(problem, search, analysis.plan, others, uncertainty), uncertainty);
  if (analysis.robust->best == 0) return;
  const RobustCandidate& best = analysis.robust->candidates[analysis.robust->best];
  const AffordableTime time = affordable_iteration(problem.model, best.plan.plan, *problem.machines,
                                                   best.plan.transfer_order);
  if (!time.iteration_s) throw sim::Stopped();
  analysis.plan = best.plan;
  analysis.plan.iteration_s = *time.iteration_s;
  analysis.diagnostics.push_back(
      fmt::format("the plan is {}, whose 90th percentile is less than the nominal plan's",
                  io::quote(best.name)));
}

/// Rejects a plan for `compare` early if it cannot be read.
void require_readable(const std::string& path_or_name, const Problem& problem) {
  if (problem.topology != "best") {
    read_plan(path_or_name, problem, problem.topology, {});
  } else if (io::is_yaml_name(path_or_name)) {
    // Only load it, since the plan may be for GPUs at either level.
    io::YamlNode::load(path_or_name);
  } else {
    read_plan(path_or_name, problem, "ps", {});
  }
}

}  // namespace

void check(const AnalysisOptions& options, const Problem& problem) {
  disabled(options);
  if (!options.jitter.empty()) sim::Jitter::parse(options.jitter);
  if (!options.compare.empty()) require_readable(options.compare, problem);
  const bool looks = options.explain || options.report || !options.compare.empty();
  if (!options.plan.empty() && !looks) {
    throw io::InputError(
        "`plan` names a plan to analyse instead of searching one: give `explain`, `compare` or "
        "`report` too (hipress-sim `plan` simulates it)");
  }
  if (!options.plan.empty() && options.robust) {
    throw io::InputError("`robust` chooses a plan, `plan` gives one: leave one of them out");
  }
  if (options.robust && options.jitter.empty() && options.bandwidth_uncertainty.value_or(0) == 0) {
    throw io::InputError(
        "`robust`: nothing is uncertain; give `jitter` lognormal:0.1, `bandwidth_uncertainty` 0.2, "
        "or both");
  }
}

TimedPlan read_plan(const std::string& path_or_name, const Problem& problem,
                    const std::string& topology, std::optional<sim::TransferOrder> order) {
  plans::PlanContext context = {
      .model = problem.model, .topology = topology, .nodes = problem.nodes};
  context.trust = problem.trust;
  if (!problem.algorithms.empty()) context.algorithm = first_lossy(problem.algorithms);
  if (topology == "best") {
    if (!io::is_yaml_name(path_or_name)) {
      throw io::InputError(
          fmt::format("plan {} does not name its topology, as a plan YAML does: take `topology` PS "
                      "or RING instead of BEST",
                      io::quote(path_or_name)));
    }
    context.topology = "ps";  // unless the file names one
  }
  if (io::is_yaml_name(path_or_name)) {
    if (const auto said = io::YamlNode::load(path_or_name).find("topology")) {
      context.topology = said->text();
    }
  }
  const bool is_named_plan =
      path_or_name == "none" || path_or_name == "all" || kernels::names_algorithm(path_or_name);
  const BaselineRow* const row = is_named_plan ? nullptr : find_baseline(path_or_name);
  if (row != nullptr && problem.machines != nullptr) {
    Problem simulated = problem;
    simulated.topology = row->topology.empty() ? context.topology : std::string(row->topology);
    Baseline baseline = simulate_baseline(*row, simulated, *problem.machines);
    if (baseline.plan.decisions.empty()) {
      throw io::InputError(fmt::format("baseline {} cannot use topology {} here: {}", row->name,
                                       simulated.topology, baseline.diagnostic));
    }
    return {.plan = std::move(baseline.plan), .transfer_order = baseline.transfer_order};
  }
  plans::ResolvedPlan resolved = plans::resolve_plan(path_or_name, context);
  if (kind_of(resolved.plan.schedule) != kind_of(problem.schedule)) {
    throw io::InputError(
        fmt::format("plan {} is for schedule {}, and the job's is {}: give "
                    "`schedule` {}",
                    io::quote(path_or_name), resolved.plan.schedule.text(), problem.schedule.text(),
                    resolved.plan.schedule.text()));
  }
  if (!order) order = resolved.transfer_order;
  return {.plan = std::move(resolved.plan),
          .transfer_order = order.value_or(sim::TransferOrder::kReady)};
}

Limits limits_of_search(const AnalysisOptions& options, const Limits& limits) {
  return options.robust ? share_of(limits, 0.5) : limits;
}

namespace {

/// Runs an analysis within the budget. A diagnostic replaces its result if the budget ends before
/// or during it or, unless the plan is given, if the plan's graph is too large for `option`.
template <class Work>
void within_budget(const char* option, const AnalysisOptions& options, const Problem& problem,
                   Analysis& analysis, const Work& work) {
  const std::shared_ptr<SimulationBudget>& budget = problem.machines->budget;
  try {
    if (budget && budget->over()) throw sim::Stopped();
    work();
  } catch (const io::InputError& error) {
    if (!options.plan.empty()) throw;
    analysis.diagnostics.push_back(fmt::format("{} was left out: {}", option, error.what()));
  } catch (const sim::Stopped&) {
    analysis.diagnostics.push_back(fmt::format(
        "{} was left out: {}", option,
        budget->interrupted() ? "interrupted"
                              : "it takes longer than the budget; give a larger `budget`"));
  }
}

}  // namespace

Analysis analyse(const AnalysisOptions& options, const Problem& problem, const SearchRow& search,
                 const Found& found) {
  Analysis analysis;
  analysis.plan = found.plan;
  const bool polishes = search.optimises && search.has_options && !found.keeps_plan;
  if (polishes && options.plan.empty()) polish(options, problem, found, analysis);
  if (options.robust) {
    within_budget("`robust`", options, problem, analysis,
                  [&] { make_robust(options, problem, search, found, analysis); });
  }
  if (options.explain) {
    within_budget("`explain`", options, problem, analysis,
                  [&] { analysis.explanation = explain(problem, analysis.plan); });
  }
  if (!options.compare.empty()) {
    within_budget("`compare`", options, problem, analysis, [&] {
      analysis.comparison = compare_plans(
          problem, analysis.plan,
          read_plan(options.compare, problem, analysis.plan.plan.topology, options.order));
    });
  }
  return analysis;
}

}  // namespace hipress::planner
