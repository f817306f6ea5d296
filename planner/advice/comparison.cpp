#include "planner/advice/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "costs/assumed_spread.hpp"
#include "costs/collectives.hpp"
#include "io/quantity.hpp"
#include "planner/search/search.hpp"
#include "planner/timing/forecast.hpp"
#include "plans/plan_builder.hpp"
#include "sim/parallel.hpp"

namespace hipress::planner {
namespace {

void keep_faster(std::optional<Contender>& kept, Contender contender) {
  if (kept && kept->plan.iteration_s <= contender.plan.iteration_s) return;
  kept = std::move(contender);
}

Contender contender_of(const Baseline& baseline, const Problem& problem) {
  return {.name = std::string(baseline.name),
          .plan = {baseline.plan, baseline.transfer_order, *baseline.iteration_s},
          .machines = problem.machines};
}

}  // namespace

Comparison compare_with_baselines(const Problem& problem, SearchResult& found, Extent extent) {
  const Machines& machines = *problem.machines;
  const auto start = std::chrono::steady_clock::now();
  const AffordableTime time =
      affordable_iteration(problem.model, found.plan, machines, found.transfer_order);
  const std::chrono::duration<double> once = std::chrono::steady_clock::now() - start;
  // Reserve time for the intervals of the plan and of its best rival, which matter more than the
  // last baselines or the passes. An interval takes two or three simulations, and the rival's may
  // take as long as the plan's. On a shared machine, all of these may take 8 times as long as the
  // simulation above.
  constexpr double kLeast_s = 1;
  if (machines.budget) {
    machines.budget->reserve(
        std::min(machines.budget->left_s() / 2, std::max(kLeast_s, 8 * once.count())));
  }
  Comparison comparison = {.planned_s = time.iteration_s,
                           .baselines = simulate_baselines(problem, machines, extent),
                           .spread = costs::spread_of(machines.profile)};
  if (!time.diagnostic.empty()) found.diagnostics.push_back("this plan: " + time.diagnostic);
  for (const Baseline& baseline : comparison.baselines) {
    if (!baseline.diagnostic.empty()) {
      found.diagnostics.push_back(fmt::format("{}: {}", baseline.name, baseline.diagnostic));
    }
  }
  if (!costs::AllReduceCosts(machines.profile).diagnostic(problem.nodes).empty()) {
    comparison.all_reduce_diagnostic = !machines.profile.all_reduce.empty()
                                           ? "all-reduce of that many nodes not measured: estimated"
                                       : machines.profile.machine
                                           ? "all-reduce not measured: modelled"
                                           : "all-reduce not measured: an ideal ring";
  }
  return comparison;
}

namespace {

/// Plans of `known` that compare_again() simulates.
std::vector<Contender> plans_to_compare(const Problem& problem, const Comparison& known) {
  constexpr double kNear = 1.2, kMostTasks = 1e4;
  std::vector<Contender> plans;
  for (const auto& one : {known.uncompressed, known.compressed, known.elsewhere}) {
    if (one) plans.push_back(*one);
  }
  const std::size_t contenders = plans.size();
  for (const Baseline& one : known.baselines) {
    const bool runs = !one.row().title.empty() && one.row().kind == kind_of(problem.schedule) &&
                      !compresses(problem.model, one.plan) && fits(problem, one.plan);
    if (!one.iteration_s || sends_alone(one.row())) continue;
    if (!runs && !may_be_plan(problem, one.plan)) continue;
    const bool near = std::any_of(
        plans.begin(), plans.begin() + static_cast<std::ptrdiff_t>(contenders),
        [&](const Contender& best) {
          return compresses(problem.model, best.plan.plan) == compresses(problem.model, one.plan) &&
                 best.name != one.name && *one.iteration_s < kNear * best.plan.iteration_s;
        });
    if (!near || simulated_tasks(problem.model, one.plan, *problem.machines) > kMostTasks) continue;
    plans.push_back(contender_of(one, problem));
  }
  return plans;
}

}  // namespace

Comparison compare_again(const Problem& problem, const Comparison& known, TimedPlan& planned) {
  const Machines& machines = *problem.machines;
  Comparison made = {.planned_s = {}, .baselines = {}};
  made.spread = costs::spread_of(machines.profile);
  for (Contender& one : plans_to_compare(problem, known)) {
    const AffordableTime time =
        affordable_iteration(problem.model, one.plan.plan, machines, one.plan.transfer_order);
    if (!time.iteration_s) continue;
    one.plan.iteration_s = *time.iteration_s;
    one.machines = &machines;
    one.response.reset();
    const bool raw = !compresses(problem.model, one.plan.plan);
    const bool foreign = known.elsewhere && known.elsewhere->name == one.name;
    keep_faster(raw       ? made.uncompressed
                : foreign ? made.elsewhere
                          : made.compressed,
                std::move(one));
  }
  for (std::optional<Contender>* kept : {&made.uncompressed, &made.elsewhere, &made.compressed}) {
    if (!*kept) continue;
    const TimedPlan& plan = (*kept)->plan;
    (*kept)->response =
        forecast(problem.model, plan.plan, plan.transfer_order, plan.iteration_s, machines);
    if (kept == &made.elsewhere || (made.planned_s && *made.planned_s <= plan.iteration_s))
      continue;
    planned = plan;
    made.planned_s = plan.iteration_s;
    made.planned = (*kept)->response;
  }
  return made;
}

SearchResult search_uncompressed(const Problem& problem, const Limits& limits) {
  Problem raw = problem;
  // Sharded jobs compute in half precision, so casts do not count as compression there.
  const bool casts = kind_of(problem.schedule) == JobKind::kSharding;
  std::erase_if(raw.algorithms, [&](const auto& one) { return !casts || !plans::is_cast(one); });
  raw.limits = limits;
  raw.limits.progress = {};
  SearchResult found = search_for(problem.schedule, "timeline").search(raw);
  found.plan = in_one_topology(std::move(found.plan));
  return found;
}

void consider_uncompressed(const Problem& problem, const SearchResult& found,
                           Comparison& comparison) {
  // DDP is simulated for sharded jobs, too, but not compared: their GPUs lack the memory for it.
  const JobKind job = kind_of(problem.schedule);
  const JobKind kind = job == JobKind::kLocalUpdates ? JobKind::kAveraging : job;
  const auto consider = [&](Contender contender) {
    const TimedPlan& plan = contender.plan;
    const bool runs = !contender.name.empty() && !find_baseline(contender.name)->title.empty() &&
                      fits(problem, plan.plan) && kind_of(plan.plan.schedule) == kind;
    if (!runs && !may_be_plan(problem, plan.plan)) return;
    const bool faster = !comparison.raw || plan.iteration_s < comparison.raw->iteration_s;
    if (faster && may_be_plan(problem, plan.plan)) comparison.raw = plan;
    keep_faster(comparison.uncompressed, std::move(contender));
  };
  for (const Baseline& baseline : comparison.baselines) {
    if (!baseline.iteration_s || compresses(problem.model, baseline.plan)) continue;
    consider(contender_of(baseline, problem));
  }
  const AffordableTime time =
      affordable_iteration(problem.model, found.plan, *problem.machines, found.transfer_order);
  if (!time.iteration_s) return;
  consider({.name = {},
            .plan = {found.plan, found.transfer_order, *time.iteration_s},
            .machines = problem.machines});
}

void consider_compressed(const Problem& problem, const Problem& given, const TimedPlan& plan,
                         Comparison& comparison) {
  if (compresses(problem.model, plan.plan)) {
    keep_faster(comparison.compressed, {.name = {}, .plan = plan, .machines = problem.machines});
  }
  for (const Baseline& baseline : comparison.baselines) {
    if (!baseline.iteration_s || !compresses(problem.model, baseline.plan)) continue;
    const bool runs = baseline.row().kind == JobKind::kSharding && fits(problem, baseline.plan);
    if (!allows(problem, baseline.plan) && !runs) continue;
    const bool may_be = may_be_plan(problem, baseline.plan);
    keep_faster(may_be ? comparison.compressed : comparison.elsewhere,
                contender_of(baseline, given));
  }
}

void take_faster(const Problem& problem, Comparison& comparison, SearchResult& found) {
  if (!comparison.planned_s) return;
  const auto take = [&](const TimedPlan& plan, const std::string& name) {
    found.diagnostics.push_back(
        fmt::format("the plan is {}, which the search did not improve", name));
    found.plan = plan.plan;
    found.transfer_order = plan.transfer_order;
    comparison.planned_s = plan.iteration_s;
  };
  if (const Baseline* faster =
          faster_baseline(problem, comparison.baselines, *comparison.planned_s)) {
    take(contender_of(*faster, problem).plan, fmt::format("baseline {}", faster->name));
  }
  const std::optional<TimedPlan>& raw = comparison.raw;
  if (raw && raw->iteration_s < *comparison.planned_s && may_be_plan(problem, raw->plan)) {
    take(*raw, "the best plan without compression");
  }
}

void add_responses_of_rivals(const Problem& problem, const Problem& given, const TimedPlan& plan,
                             Comparison& comparison) {
  // Each pass for accuracy may raise the upper end by the tolerance.
  constexpr int kMostPasses = 3;
  const std::optional<double> upper_s = upper_end_s(problem, plan);
  const double limit_s = upper_s ? *upper_s * std::pow(1 + problem.tolerance, kMostPasses)
                                 : std::numeric_limits<double>::infinity();
  std::vector<Baseline*> rivals;
  for (Baseline& baseline : comparison.baselines) {
    if (!baseline.iteration_s || *baseline.iteration_s > limit_s) continue;
    if (may_be_plan(problem, baseline.plan)) rivals.push_back(&baseline);
  }
  sim::run_parallel(rivals.size(), problem.limits.jobs, [&](std::size_t i, unsigned) {
    Baseline& rival = *rivals[i];
    rival.response = forecast(problem.model, rival.plan, rival.transfer_order, rival.iteration_s,
                              *given.machines);
  });
}

namespace {

/// True if the baseline may be the plan, and compresses nothing if the plan compresses nothing.
bool is_rival(const Problem& problem, const casync::Plan& plan, const Baseline& baseline) {
  return baseline.iteration_s && may_be_plan(problem, baseline.plan) &&
         (compresses(problem.model, plan) || !compresses(problem.model, baseline.plan));
}

}  // namespace

Rivals rivals_of(const Problem& problem, const casync::Plan& plan, const Comparison& comparison) {
  Rivals rivals;
  const std::optional<TimedPlan>& raw = comparison.raw;
  if (raw && may_be_plan(problem, raw->plan)) rivals.uncompressed = &*raw;
  for (const Baseline& baseline : comparison.baselines) {
    if (!is_rival(problem, plan, baseline)) continue;
    TimedPlan& rival = rivals.others.emplace_back(
        TimedPlan{baseline.plan, baseline.transfer_order, *baseline.iteration_s});
    if (baseline.response) {
      rival.upper_s = sim::interval(*baseline.response, comparison.spread).p90_s;
    }
  }
  return rivals;
}

std::string about_upper_end(const Problem& problem, const casync::Plan& plan,
                            const Comparison& comparison) {
  if (!comparison.planned) return "";
  constexpr double kNothing = 1e-6;
  const double planned_s = sim::interval(*comparison.planned, comparison.spread).p90_s;
  const Baseline* lowest = nullptr;
  double lowest_s = planned_s * (1 - kNothing);
  for (const Baseline& baseline : comparison.baselines) {
    if (!baseline.response || !is_rival(problem, plan, baseline)) continue;
    const double upper_s = sim::interval(*baseline.response, comparison.spread).p90_s;
    if (upper_s >= lowest_s) continue;
    lowest_s = upper_s;
    lowest = &baseline;
  }
  if (lowest == nullptr) return "";
  return fmt::format(
      "baseline {} has a lower 90th percentile ({}, this plan {}) with a median of {} (this plan "
      "{}, "
      "and the median decides)",
      lowest->name, io::format_duration(lowest_s), io::format_duration(planned_s),
      io::format_duration(*lowest->iteration_s), io::format_duration(*comparison.planned_s));
}

namespace {

/// A response to be found.
struct Wanted {
  const casync::Plan* plan;
  sim::TransferOrder order;
  std::optional<double> iteration_s;
  const Machines* machines;
  std::optional<sim::Response>* response;
};

std::vector<Wanted> wanted_of_contenders(const Problem& problem, const TimedPlan& plan,
                                         Comparison& comparison) {
  std::vector<Wanted> all = {{&plan.plan, plan.transfer_order, comparison.planned_s,
                              problem.machines, &comparison.planned}};
  for (std::optional<Contender>* contender :
       {&comparison.uncompressed, &comparison.compressed, &comparison.elsewhere}) {
    if (!*contender) continue;
    const TimedPlan& timed = (*contender)->plan;
    all.push_back({&timed.plan, timed.transfer_order, timed.iteration_s, (*contender)->machines,
                   &(*contender)->response});
  }
  return all;
}

Wanted wanted_of(Baseline& baseline, const Problem& given) {
  return {&baseline.plan, baseline.transfer_order, baseline.iteration_s, given.machines,
          &baseline.response};
}

void add(const std::vector<Wanted>& all, const Problem& problem, const Problem& given) {
  if (given.machines->budget) given.machines->budget->reserve(0);
  sim::run_parallel(all.size(), problem.limits.jobs, [&](std::size_t i, unsigned) {
    const Wanted& wanted = all[i];
    *wanted.response =
        forecast(problem.model, *wanted.plan, wanted.order, wanted.iteration_s, *wanted.machines);
  });
}

}  // namespace

void add_responses_of_contenders(const Problem& problem, const Problem& given,
                                 const TimedPlan& plan, Comparison& comparison) {
  std::vector<Wanted> all = wanted_of_contenders(problem, plan, comparison);
  const Baseline* const today = comparison.today(problem);
  for (Baseline& baseline : comparison.baselines) {
    if (&baseline == today) all.push_back(wanted_of(baseline, given));
  }
  add(all, problem, given);
}

void add_responses(const Problem& problem, const Problem& given, const TimedPlan& plan,
                   Comparison& comparison) {
  std::vector<Wanted> all = wanted_of_contenders(problem, plan, comparison);
  for (Baseline& baseline : comparison.baselines) {
    if (!baseline.response) all.push_back(wanted_of(baseline, given));
  }
  add(all, problem, given);
}

}  // namespace hipress::planner
