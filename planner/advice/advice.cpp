#include "planner/advice/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "costs/levels.hpp"
#include "io/error.hpp"
#include "planner/advice/comparison.hpp"
#include "planner/analysis/break_even_density.hpp"
#include "planner/bound/bound.hpp"
#include "planner/choices/choices.hpp"
#include "planner/problem/budget.hpp"
#include "plans/plan_builder.hpp"
#include "sim/parallel.hpp"

namespace hipress::planner {
namespace {

// Budget of the search for plans without compression, if the main search does not optimise.
constexpr double kDropInBudget_s = 0.5;

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Searches for a plan with a share of the budget, or reads the given one.
SearchResult find_plan(const PreparedRequest& prepared, const Problem& problem, double share) {
  const Request& request = prepared.request;
  if (!prepared.searches()) {
    TimedPlan given = read_plan(request.analysis.plan, problem,
                                topology_of(request, prepared.search), request.analysis.order);
    return {
        .plan = std::move(given.plan), .diagnostics = {}, .transfer_order = given.transfer_order};
  }
  Problem limited = problem;
  limited.limits = share_of(limits_of_search(request.analysis, problem.limits), share);
  SearchResult found = prepared.search.search(limited);
  if (prepared.hooks.searched) prepared.hooks.searched();
  return found;
}

/// Searches for the best plan without compression; unset if nothing can be compressed.
std::optional<SearchResult> find_uncompressed(const PreparedRequest& prepared,
                                              const Problem& problem) {
  if (!may_compress(problem)) return std::nullopt;
  Limits limits =
      share_of(problem.limits, prepared.share_of_level() * PreparedRequest::kShareUncompressed);
  if (!prepared.search.optimises) limits.budget_s = std::min(limits.budget_s, kDropInBudget_s);
  return search_uncompressed(problem, limits);
}

/// Runs find_plan() and find_uncompressed(), in parallel if `jobs` allows it.
std::pair<SearchResult, std::optional<SearchResult>> find_both(const PreparedRequest& prepared,
                                                               const Problem& problem) {
  std::pair<SearchResult, std::optional<SearchResult>> found;
  sim::run_parallel(2, problem.limits.jobs, [&](std::size_t i, unsigned) {
    if (i == 0) {
      found.first =
          find_plan(prepared, problem, prepared.share_of_level() * prepared.share_of_search());
    } else {
      found.second = find_uncompressed(prepared, problem);
    }
  });
  return found;
}

void consider_uncompressed(const PreparedRequest& prepared, const Problem& problem,
                           const std::optional<SearchResult>& found, Advice& advice) {
  if (!found) return;
  planner::consider_uncompressed(problem, *found, advice.comparison);
  if (prepared.optimises()) advice.found.evaluations += found->evaluations;
}

/// Searches with the GPUs at the other level, and takes that plan if it is faster.
void search_other_levels(const PreparedRequest& prepared, const Problem& other, Advice& advice) {
  if (prepared.form == PlanForm::kText) {
    const std::optional<TimedPlan> raw = advice.comparison.raw;
    consider_uncompressed(prepared, other, find_uncompressed(prepared, other), advice);
    advice.comparison.raw = raw;
    return;
  }
  SearchResult& found = advice.found;
  auto [result, uncompressed] = find_both(prepared, other);
  consider_uncompressed(prepared, other, uncompressed, advice);
  AffordableTime time =
      affordable_iteration(other.model, result.plan, *other.machines, result.transfer_order);
  const std::optional<TimedPlan>& raw = advice.comparison.raw;
  const bool raw_is_of_them = raw && raw->plan.nodes == other.nodes;
  if (raw_is_of_them && time.iteration_s && raw->iteration_s < *time.iteration_s) {
    result.plan = raw->plan;
    result.transfer_order = raw->transfer_order;
    time.iteration_s = raw->iteration_s;
  }
  found.evaluations += result.evaluations;
  found.complete = found.complete && result.complete;
  if (!time.iteration_s) {
    found.diagnostics.push_back("plans with other levels of GPUs are left out: " + time.diagnostic);
    return;
  }
  std::optional<double>& planned_s = advice.comparison.planned_s;
  if (planned_s) {
    // If the times differ by no more than the tolerance, the plan with the smaller loss is taken.
    const Coarseness had = coarseness_of(prepared.problem, found.plan);
    const Coarseness has = coarseness_of(other, result.plan);
    const double slack = 1 + prepared.problem.tolerance;
    const double limit_s = has < had   ? *planned_s * slack
                           : had < has ? *planned_s / slack
                                       : *planned_s;
    if (*time.iteration_s > limit_s || (has == had && *time.iteration_s == *planned_s)) return;
  }
  result.evaluations = found.evaluations;
  result.complete = found.complete;
  result.diagnostics.push_back(costs::describe_levels(other.machines->cluster));
  found = std::move(result);
  planned_s = time.iteration_s;
  advice.problem = &other;
}

/// Polishes the plan, and runs the requested analyses.
void analyse(const PreparedRequest& prepared, Advice& advice) {
  const Request& request = prepared.request;
  std::optional<double>& planned_s = advice.comparison.planned_s;
  SearchResult& found = advice.found;
  if (!planned_s) {
    if (!request.analysis.any()) return;
    if (prepared.searches()) {
      found.diagnostics.push_back("the plan was not simulated, so it is not analysed");
      return;
    }
    throw io::InputError(fmt::format(
        "{}, so it cannot be analysed: take fewer nodes, or a larger `budget`",
        found.diagnostics.empty() ? "this plan was not simulated" : found.diagnostics.back()));
  }
  const std::vector<Baseline> none;
  const bool at_given_levels = advice.problem == &advice.own(prepared);
  advice.analysis =
      planner::analyse(request.analysis, *advice.problem, prepared.search,
                       {.plan = {found.plan, found.transfer_order, *planned_s},
                        .search_s = advice.search_s,
                        .evaluations = found.evaluations,
                        .finalists = found.finalists,
                        .baselines = at_given_levels ? advice.comparison.baselines : none,
                        .rivals = rivals_of(*advice.problem, found.plan, advice.comparison),
                        .keeps_plan = advice.keeps_plan});
  const Analysis& analysis = advice.analysis;
  found.plan = analysis.plan.plan;
  found.transfer_order = analysis.plan.transfer_order;
  found.diagnostics.insert(found.diagnostics.end(), analysis.diagnostics.begin(),
                           analysis.diagnostics.end());
  planned_s = analysis.plan.iteration_s;
}

/// Replaces the plan by one without compression if compression saves no more than the tolerance.
void take_advised(const PreparedRequest& prepared, Advice& advice) {
  Comparison& comparison = advice.comparison;
  SearchResult& found = advice.found;
  const std::optional<TimedPlan>& raw = comparison.raw;
  if (!prepared.optimises() || prepared.request.writes_fastest() || !raw) return;
  if (!comparison.uncompressed || !compresses(prepared.model, found.plan)) return;
  if (!may_be_plan(*advice.problem, raw->plan)) return;
  const double saved = 1 - *comparison.planned_s * steps_of(*advice.problem, found.plan) /
                               (comparison.uncompressed->plan.iteration_s *
                                steps_of(*advice.problem, comparison.uncompressed->plan.plan));
  if (saved > prepared.problem.tolerance) return;
  found.diagnostics.push_back(fmt::format(
      "the plan compresses nothing{}, as advised: the fastest compressed plan would save {:.1f} % "
      "(`write` fastest writes it)",
      plans::used_algorithms(prepared.model, raw->plan).empty() ? "" : " beyond half precision",
      100 * std::max(0.0, saved)));
  found.plan = raw->plan;
  found.transfer_order = raw->transfer_order;
  comparison.planned_s = raw->iteration_s;
}

/// Lower bound, in seconds, for all plans that a search at this level of GPUs can return.
double bound(const Problem& problem, std::optional<double> known_s) {
  constexpr std::size_t kBranchNodes = 30;  // tens of milliseconds for most models
  return lower_bound(problem.model, *problem.machines, make_choices(problem),
                     {.branch_nodes = kBranchNodes,
                      .known_s = known_s.value_or(0),
                      .stop = stop_of(*problem.machines)})
      .seconds;
}

/// Lower bound, in seconds, for all plans that the search could have returned. Unset if unknown;
/// `diagnostic` may give the reason. `of_search_s` is the search's own bound, 0 if it has none.
std::optional<double> find_bound(const PreparedRequest& prepared, double of_search_s,
                                 std::optional<double> known_s, std::string& diagnostic) {
  if (!prepared.search.simulates || !prepared.searches()) return std::nullopt;
  if (!prepared.search.has_options) {
    return of_search_s > 0 ? std::optional(of_search_s) : std::nullopt;
  }
  const Problem& problem = prepared.problem;
  if (const casync::Topology* unknown = topology_without_bound(make_choices(problem))) {
    diagnostic = fmt::format("topology {} has no lower bound", unknown->name);
    return std::nullopt;
  }
  const double bound_s = bound(problem, known_s);
  return prepared.other ? std::min(bound_s, bound(prepared.other->problem(), known_s)) : bound_s;
}

/// Reason why plans cannot be simulated: the profile lacks costs, which SeCoPa's formulas do not
/// need. Empty if they can.
std::string missing_costs(const PreparedRequest& prepared) {
  if (prepared.search.simulates || !prepared.searches()) return {};
  try {
    for (const std::string& name : prepared.problem.algorithms) prepared.profile.codec(name);
    return {};
  } catch (const io::InputError& error) {
    return fmt::format("nothing was simulated: {}", error.what());
  }
}

/// Finds the density above which a plan that gathers sparse messages should send dense ones. Runs
/// last, since it takes some simulations.
void consider_dense(const PreparedRequest& prepared, Advice& advice) {
  if (!prepared.searches() || !advice.comparison.planned_s) return;
  if (!prepared.search.has_options) return;
  SearchResult& found = advice.found;
  const std::optional<BreakEvenDensity> found_out = break_even_density(
      *advice.problem, {found.plan, found.transfer_order, *advice.comparison.planned_s});
  if (!found_out) return;
  advice.analysis.dense = found_out->dense;
  const std::string& unknown = found_out->diagnostic;
  if (!unknown.empty()) {
    found.diagnostics.push_back("the density from which dense is faster is unknown: " + unknown);
  }
  if (found_out->dense && prepared.form == PlanForm::kText) {
    found.diagnostics.push_back(
        "only a plan YAML can hold the density from which the plan sends dense messages: take "
        "`output` X.yaml");
  }
}

/// Searches with the GPUs at the problem's level, and compares the results.
void search_own_level(const PreparedRequest& prepared, const Problem& problem, Advice& advice) {
  const Stopwatch watch;
  const std::string missing = missing_costs(prepared);
  std::optional<SearchResult> uncompressed;
  if (missing.empty()) {
    std::tie(advice.found, uncompressed) = find_both(prepared, problem);
  } else {
    advice.found =
        find_plan(prepared, problem, prepared.share_of_level() * prepared.share_of_search());
  }
  advice.search_s = watch.seconds();
  SearchResult& found = advice.found;
  found.diagnostics.insert(found.diagnostics.end(), prepared.diagnostics.begin(),
                           prepared.diagnostics.end());
  if (missing.empty()) {
    advice.comparison = compare_with_baselines(problem, found, prepared.baselines);
    consider_uncompressed(prepared, problem, uncompressed, advice);
  } else {
    advice.comparison.not_simulated = missing;
  }
  if (prepared.optimises()) take_faster(problem, advice.comparison, found);
}

/// Analyses the plan, and computes the lower bound, in parallel. `least_found_s` is the time of the
/// fastest plan that was found; unset: nothing was simulated.
void analyse_and_bound(const PreparedRequest& prepared, std::optional<double> least_found_s,
                       Advice& advice) {
  const Problem& problem = advice.own(prepared);
  Comparison& comparison = advice.comparison;
  std::optional<double> bound_s;
  const double of_search_s = advice.found.lower_bound_s;
  std::string no_bound;
  sim::run_parallel(2, problem.limits.jobs, [&](std::size_t i, unsigned) {
    if (i == 1) {
      bound_s = find_bound(prepared, of_search_s, least_found_s, no_bound);
      return;
    }
    if (prepared.optimises() && comparison.planned_s) {
      add_responses_of_rivals(
          *advice.problem, problem,
          {advice.found.plan, advice.found.transfer_order, *comparison.planned_s}, comparison);
    }
    analyse(prepared, advice);
  });
  comparison.lower_bound_s = bound_s;
  if (!no_bound.empty()) advice.found.diagnostics.push_back(std::move(no_bound));
}

/// Judges the plan. The sentence also says if ready times are missing, or if the model was timed on
/// other GPUs than the profile.
void give_verdict(const PreparedRequest& prepared, Advice& advice) {
  advice.verdict = judge(*advice.problem, advice.found.plan, advice.comparison);
  weaken(models::missing_times(prepared.model), advice.verdict, advice.comparison);
  if (!prepared.request.times.compute_time.empty()) return;
  const std::string other = other_hardware(prepared.model.source, prepared.profile.hardware);
  advice.verdict.sentence.insert(0, other);
}

/// Advice for one of a request's problems. `other` is the same problem with the GPUs at the other
/// level; null: there is one level only.
Advice find_advice(const PreparedRequest& prepared, const Problem& problem, const Problem* other) {
  Advice advice;
  advice.problem = &problem;
  search_own_level(prepared, problem, advice);
  const Stopwatch watch;
  if (other != nullptr) search_other_levels(prepared, *other, advice);
  advice.search_s += watch.seconds();
  const SearchResult& found = advice.found;
  Comparison& comparison = advice.comparison;
  comparison.least_found_s = comparison.planned_s;
  if (comparison.planned_s && may_compress(problem)) {
    consider_compressed(*advice.problem, problem,
                        {found.plan, found.transfer_order, *comparison.planned_s}, comparison);
  }
  if (comparison.planned_s) take_advised(prepared, advice);
  return advice;
}

/// The problem with these algorithms only, and with its limits divided by `parts`.
std::shared_ptr<const Problem> bounded_by(const Problem& problem,
                                          const std::vector<std::string>& algorithms,
                                          std::size_t parts) {
  auto bounded = std::make_shared<Problem>(problem);
  bounded->algorithms = algorithms;
  bounded->limits = share_of(problem.limits, 1 / static_cast<double>(parts));
  return bounded;
}

bool goes_round_rings(const casync::Plan& plan) {
  constexpr std::string_view kRing = "ring";
  return plan.topology == kRing || plan.raw_topology == kRing || plan.shards_by == kRing;
}

struct Levels {
  std::shared_ptr<const Problem> own, other;
};

}  // namespace

Advice find_advice(const PreparedRequest& prepared) {
  const Problem& problem = prepared.problem;
  const Problem* const other = prepared.other ? &prepared.other->problem() : nullptr;
  if (!prepared.learning || !prepared.searches() || problem.algorithms.empty()) {
    return find_advice(prepared, problem, other);
  }
  // Coarser algorithms have shorter steps but need more, so there is a search for each of `lists`.
  const auto lists = prepared.learning->bounded(problem.algorithms);
  std::optional<Advice> best;
  double best_s = 0;
  for (const std::vector<std::string>& algorithms : lists) {
    const Levels levels = {bounded_by(problem, algorithms, lists.size()),
                           other ? bounded_by(*other, algorithms, lists.size()) : nullptr};
    Advice one = find_advice(prepared, *levels.own, levels.other.get());
    one.bounded = levels.own;
    one.bounded_other = levels.other;
    const double time_s =
        one.comparison.planned_s.value_or(INFINITY) * steps_of(*one.problem, one.found.plan);
    if (best && best_s <= time_s) continue;
    best = std::move(one);
    best_s = time_s;
  }
  // Restart the budget, so that intervals and passes get as much time as without a pilot.
  if (problem.machines->budget) problem.machines->budget->restart();
  return std::move(*best);
}

void complete(const PreparedRequest& prepared, Advice& advice) {
  const Problem& problem = advice.own(prepared);
  SearchResult& found = advice.found;
  Comparison& comparison = advice.comparison;
  analyse_and_bound(prepared, comparison.least_found_s, advice);
  add_responses(*advice.problem, problem,
                {found.plan, found.transfer_order, comparison.planned_s.value_or(0)}, comparison);
  if (std::string said = about_upper_end(*advice.problem, found.plan, comparison);
      prepared.optimises() && !said.empty()) {
    found.diagnostics.push_back(std::move(said));
  }
  consider_dense(prepared, advice);
  give_verdict(prepared, advice);
  if (is_interrupted(problem.limits)) {
    found.diagnostics.push_back(found.complete
                                    ? "interrupted after the search: passes had less time"
                                    : "interrupted: this is the best plan so far");
  }
  if (!prepared.searches()) return;
  found.plan = in_one_topology(std::move(found.plan));
  if (goes_round_rings(found.plan)) {
    found.plan.rails = costs::rails(advice.problem->machines->cluster);
  }
}

Advice advise(const PreparedRequest& prepared) {
  Advice advice = find_advice(prepared);
  complete(prepared, advice);
  return advice;
}

Advice advise_briefly(PreparedRequest& prepared) {
  prepared.baselines = Extent::kCheap;
  Advice advice = find_advice(prepared);
  const SearchResult& found = advice.found;
  add_responses_of_contenders(
      *advice.problem, advice.own(prepared),
      {found.plan, found.transfer_order, advice.comparison.planned_s.value_or(0)},
      advice.comparison);
  give_verdict(prepared, advice);
  return advice;
}

}  // namespace hipress::planner
