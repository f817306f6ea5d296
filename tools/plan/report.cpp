#include "tools/plan/report.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "costs/all_reduce.hpp"
#include "costs/description.hpp"
#include "io/error.hpp"
#include "io/quantity.hpp"
#include "io/spelling.hpp"
#include "io/utf8.hpp"
#include "planner/bound/bound.hpp"
#include "plans/plan_builder.hpp"
#include "plans/plan_file.hpp"
#include "tools/plan/analysis_report.hpp"

namespace hipress::planner {
namespace {

using Json = nlohmann::ordered_json;

std::size_t count_compressed(const models::Model& model, const casync::Plan& plan) {
  std::size_t count = 0;
  for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
    count += plans::is_raw(model.gradients[g], plan, plan.decisions[g]) ? 0 : 1;
  }
  return count;
}

/// The algorithms that the plan really compresses with.
std::vector<std::string> used_algorithms(const models::Model& model, const casync::Plan& plan) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < plan.algorithms.size(); ++i) {
    bool used = false;
    for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
      used = used || (plan.decisions[g].algorithm == static_cast<std::int8_t>(i) &&
                      !plans::is_raw(model.gradients[g], plan, plan.decisions[g]));
    }
    if (used) names.push_back(plan.algorithms[i].name);
  }
  return names;
}

/// "onebit, fp16": what the plan compresses with.
std::string algorithms_of(const models::Model& model, const casync::Plan& plan) {
  return fmt::format("{}", fmt::join(used_algorithms(model, plan), ", "));
}

/// A text plan that compresses with one algorithm says only that it compresses; which, the tools
/// that replay it must be told if it is not the one that they take for granted. Empty: they need
/// not.
std::string diagnose_algorithm(const models::Model& model, const casync::Plan& plan) {
  const std::vector<std::string> used = used_algorithms(model, plan);
  if (used.size() != 1 || used.front() == plans::PlanContext{.model = model}.algorithm) return {};
  if (is_staged(used.front())) return {};  // the text says it
  return fmt::format(
      "the plan compresses with {}, which its text does not say: take --output X.yaml, or replay "
      "with --algorithm {}",
      used.front(), io::quote(used.front()));
}

/// What is known of better plans, where that says something.
void print_bound(const Comparison& comparison) {
  constexpr double kSaysSomething = 0.5;  // of the plan's time
  if (comparison.proved_optimal) {
    fmt::print(std::cout, "  no plan that the search may choose is faster: proved\n");
    return;
  }
  const std::optional<double> gap = comparison.gap();
  if (!gap) return;
  if (*gap <= kSaysSomething) {
    fmt::print(std::cout,
               "  no plan that the search may choose takes less than {} ({:.1f} % less)\n",
               io::format_duration(*comparison.lower_bound_s),
               100 * (1 - *comparison.lower_bound_s / *comparison.planned_s));
  } else {
    fmt::print(std::cout,
               "  no plan takes less than {}, but how much better one may be is not known\n",
               io::format_duration(*comparison.lower_bound_s));
  }
}

/// What keeps a baseline from being the plan.
std::string why_forbidden(const Problem& problem, const casync::Plan& plan) {
  if (!allows(problem, plan)) return "--algorithm does not allow it";
  if (problem.strategy != "best" && plan.strategy != problem.strategy) {
    return fmt::format("goes by {}: --topology BEST allows that", plan.strategy);
  }
  if (plan.nodes != problem.nodes) {
    return fmt::format("has {} nodes instead of {}, with the GPUs at another level", plan.nodes,
                       problem.nodes);
  }
  return "has groups, which only a plan YAML says: --output X.yaml allows that";
}

}  // namespace

void write_plan(const Options& options, const models::Model& model, const SearchResult& found,
                const costs::Profile& profile, const Comparison& comparison,
                const std::optional<plans::DenseFallback>& dense) {
  if (!options.yaml()) return plans::write_plan_text(options.output, model, found.plan);
  plans::write_plan_yaml(options.output, model, found.plan,
                         {.predicted_iteration_s = comparison.planned_s,
                          .search = options.request.search_name(),
                          .profile = profile.name + " " + profile.fingerprint,
                          .network = options.request.network,
                          .lower_bound_s = comparison.lower_bound_s,
                          .transfer_order = found.transfer_order,
                          .dense = dense});
}

std::string machines_of(const PreparedRequest& prepared, const Problem& problem) {
  const std::string machines =
      costs::describe_machines(prepared.profile, problem.machines->cluster, prepared.model);
  if (!prepared.request.machines.profile.empty()) return machines;
  return fmt::format("{}; this profile {}", machines, costs::kWhyDefault);
}

void print_json(const Advice& advice, const std::optional<models::Traced>& traced) {
  const Problem& problem = *advice.problem;
  const SearchResult& found = advice.found;
  const Comparison& comparison = advice.comparison;
  const Verdict& verdict = advice.verdict;
  const auto number = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  const auto add_time = [&](Json& to, const std::string& name, const std::optional<double>& time_s,
                            const std::optional<sim::Response>& response) {
    std::optional<sim::Interval> range;
    if (response) range = sim::interval(*response, comparison.spread);
    to[name] = number(time_s);
    to[name + "_p10"] = range ? Json(range->p10_s) : Json();
    to[name + "_p90"] = range ? Json(range->p90_s) : Json();
  };
  Json baselines, baselines_p10, baselines_p90, faster_than;
  for (const Baseline& baseline : comparison.baselines) {
    const std::string name(baseline.name);
    Json times;
    add_time(times, name, baseline.iteration_s, baseline.response);
    baselines[name] = times[name];
    baselines_p10[name] = times[name + "_p10"];
    baselines_p90[name] = times[name + "_p90"];
    faster_than[name] =
        comparison.planned && baseline.response
            ? Json(sim::saving(*comparison.planned, *baseline.response, comparison.spread)
                       .probability)
            : Json();
  }
  Json report = {{"gradients", found.plan.decisions.size()},
                 {"compressed", count_compressed(problem.model, found.plan)},
                 {"topology", found.plan.strategy},
                 {"raw_topology", raw_strategy_of(found.plan)},
                 {"advice", to_string(verdict.answer)},
                 {"advice_probability", number(verdict.probability)},
                 {"verdict", verdict.sentence}};
  add_time(report, "predicted_iteration_s", comparison.planned_s, comparison.planned);
  const auto& raw = comparison.uncompressed;
  add_time(report, "best_uncompressed_s", raw ? std::optional(raw->plan.iteration_s) : std::nullopt,
           raw ? raw->response : std::nullopt);
  if (traced) {
    report["traced"] = {{"step_s", traced->step_s},
                        {"exposed_communication_s", traced->exposed_communication_s},
                        {"most_gain", traced->exposed_communication_s / traced->step_s}};
  }
  report.update(Json{{"lower_bound_s", number(comparison.lower_bound_s)},
                     {"gap", number(comparison.gap())},
                     {"proved_optimal", comparison.proved_optimal},
                     {"evaluations", found.evaluations},
                     {"search_s", advice.search_s},
                     {"baselines", baselines},
                     {"baselines_p10", baselines_p10},
                     {"baselines_p90", baselines_p90},
                     {"faster_than", faster_than}});
  add_to(report, problem, advice.analysis);
  std::cout << io::as_command_line(report.dump(2)) << '\n';
}

void print_table(const Options& options, const Problem& problem, const costs::Profile& profile,
                 const Comparison& comparison) {
  fmt::print(std::cout, "\nsimulated iteration, profile {}, network {} (in 8 runs of 10):\n",
             profile.name, options.request.network);
  const auto line = [&](std::string_view name, const std::optional<double>& seconds,
                        const std::optional<sim::Response>& response, std::string_view what) {
    fmt::print(std::cout, "  {:<18}{:<30}{}\n", name,
               seconds ? with_interval(*seconds, response, comparison.spread) : "not simulated",
               io::as_command_line(what));
  };
  // Of several GPUs per host, either the GPUs or the hosts are nodes.
  const auto said = [&](std::string_view what, const casync::Plan& plan) {
    const bool other_level = !plan.decisions.empty() && plan.nodes != problem.nodes;
    return other_level ? fmt::format("{}; N = {}", what, plan.nodes) : std::string(what);
  };
  for (const Baseline& baseline : comparison.baselines) {
    line(baseline.name, baseline.iteration_s, baseline.response,
         said(find_baseline(baseline.name)->help, baseline.plan));
  }
  if (const auto& raw = comparison.uncompressed) {
    const std::string_view what =
        raw->name.empty() ? "searched, with bulk groups" : find_baseline(raw->name)->help;
    line("best uncompressed", raw->plan.iteration_s, raw->response, said(what, raw->plan.plan));
  }
  line("this plan", comparison.planned_s, comparison.planned, "as it is written");
  const bool all_ranges =
      comparison.planned && std::ranges::all_of(comparison.baselines, [](const Baseline& one) {
        return !one.iteration_s || one.response;
      });
  if (!all_ranges) {
    fmt::print(std::cout,
               "  where there is no range, the budget left no time for it: a larger "
               "--budget does\n");
  }
  if (!comparison.planned_s) return;
  print_bound(comparison);
  if (const auto* faster = faster_baseline(problem, comparison.baselines, *comparison.planned_s)) {
    fmt::print(std::cout, "  '{}' is faster than this plan\n", faster->name);
  } else if (const auto* other = faster_baseline(problem, comparison.baselines,
                                                 *comparison.planned_s, Allowance::kForbidden)) {
    fmt::print(std::cout, "  '{}' is faster than this plan, but {}\n", other->name,
               why_forbidden(problem, other->plan));
  }
}

void print_report(const Options& options, const Problem& problem, const casync::Plan& plan) {
  const std::string name = io::printable(options.plan_name());
  const std::string by = raw_strategy_of(plan);
  const std::string raw = by == plan.strategy ? "" : fmt::format(" ({} where raw)", by);
  const std::size_t count = count_compressed(problem.model, plan);
  fmt::print(std::cout, "{}: {} gradients, {}{}, N = {}; {}\n", name, plan.decisions.size(),
             plan.strategy, raw, plan.nodes,
             count == 0
                 ? "none compressed"
                 : fmt::format("{} compressed with {}", count, algorithms_of(problem.model, plan)));
}

void add_replay_diagnostics(const Options& options, const models::Model& model,
                            const costs::Profile& profile, SearchResult& found) {
  const std::string raw = raw_strategy_of(found.plan);
  if (sends_raw_alone(raw)) {
    const std::string estimate = costs::AllReduceCosts(profile).diagnostic(found.plan.nodes);
    if (!estimate.empty()) found.diagnostics.push_back(estimate);
  }
  if (!options.yaml()) {
    const std::string algorithm = diagnose_algorithm(model, found.plan);
    if (!algorithm.empty()) found.diagnostics.push_back(algorithm);
  }
  if (!found.plan.raw_strategy.empty() && !options.yaml()) {
    found.diagnostics.push_back(fmt::format(
        "raw gradients go by {}, which only a plan YAML says: take --output X.yaml{}", raw,
        sends_raw_alone(raw)
            ? fmt::format(", or replay with --topology {} --raw-allreduce", found.plan.strategy)
            : ""));
  }
  if (found.transfer_order == sim::TransferOrder::kNeed) {
    found.diagnostics.push_back(
        options.yaml() ? "the plan is for transfer order need, in which hipress-exec cannot run it"
                       : "the plan is for --transfer-order need, which only a plan YAML says: take "
                         "--output X.yaml, or replay with hipress-sim --transfer-order need");
  }
  const bool grouped = found.plan.bulk.threshold_bytes > 0 || found.plan.batch.threshold_bytes > 0;
  if (grouped && !options.yaml()) {
    found.diagnostics.push_back(
        "the plan has bulk groups or batches, which only a plan YAML says: take --output X.yaml");
  }
}

}  // namespace hipress::planner
