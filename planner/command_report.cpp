#include "planner/command_report.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "costs/all_reduce.hpp"
#include "io/error.hpp"
#include "io/quantity.hpp"
#include "io/utf8.hpp"
#include "planner/bound.hpp"
#include "plans/plan_builder.hpp"
#include "plans/plan_file.hpp"

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

/// "onebit, fp16": what the plan compresses with, or if nothing, what it might have.
std::string algorithms_of(const Problem& problem, const casync::Plan& plan) {
  std::string text;
  for (const std::string& name : used_algorithms(problem.model, plan)) {
    text += (text.empty() ? "" : ", ") + name;
  }
  if (!text.empty()) return text;
  return problem.algorithms.empty() ? "nothing" : first_lossy(problem.algorithms);
}

/// A text plan that compresses with one algorithm says only that it compresses; which, the tools
/// that replay it must be told if it is not the one that they take for granted. Empty: they need
/// not.
std::string remark_on_algorithm(const models::Model& model, const casync::Plan& plan) {
  const std::vector<std::string> used = used_algorithms(model, plan);
  if (used.size() != 1 || used.front() == plans::PlanContext{.model = model}.algorithm) return {};
  return fmt::format(
      "the plan compresses with {}, which its text does not say: take --output X.yaml, or replay "
      "with --algorithm {}",
      used.front(), io::quote(used.front()));
}

}  // namespace

std::optional<double> Comparison::gap() const {
  if (!planned_s || !lower_bound_s) return std::nullopt;
  return planner::gap(*planned_s, *lower_bound_s);
}

void write_plan(const Options& options, const models::Model& model, const SearchResult& found,
                const costs::Profile& profile, const std::optional<Comparison>& comparison) {
  if (!options.yaml()) return plans::write_plan_text(options.output, model, found.plan);
  plans::write_plan_yaml(options.output, model, found.plan,
                         {.predicted_iteration_s = comparison->planned_s,
                          .search = options.search_name(),
                          .profile = profile.name + " " + profile.fingerprint,
                          .network = options.network,
                          .lower_bound_s = comparison->lower_bound_s,
                          .transfer_order = found.transfer_order});
}

void print_json(const Problem& problem, const SearchResult& found, double search_s,
                const Comparison& comparison, const Analysis& analysis) {
  const auto number = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json baselines;
  for (const Baseline& baseline : comparison.baselines) {
    baselines[std::string(baseline.name)] = number(baseline.iteration_s);
  }
  Json report = {{"gradients", found.plan.decisions.size()},
                 {"compressed", count_compressed(problem.model, found.plan)},
                 {"topology", found.plan.strategy},
                 {"raw_topology", raw_strategy_of(found.plan)},
                 {"predicted_iteration_s", number(comparison.planned_s)},
                 {"lower_bound_s", number(comparison.lower_bound_s)},
                 {"gap", number(comparison.gap())},
                 {"proved_optimal", comparison.proved_optimal},
                 {"evaluations", found.evaluations},
                 {"search_s", search_s},
                 {"baselines", baselines}};
  add_to(report, problem, analysis);
  std::cout << report.dump(2) << '\n';
}

void print_table(const Options& options, const Problem& problem, const costs::Profile& profile,
                 const Comparison& comparison) {
  fmt::print(std::cout, "\nsimulated iteration, profile {}, network {}:\n", profile.name,
             options.network);
  const auto line = [](std::string_view name, const std::optional<double>& seconds) {
    fmt::print(std::cout, "  {:<18}{:>10}\n", name,
               seconds ? io::format_duration(*seconds) : "not simulated");
  };
  for (const Baseline& baseline : comparison.baselines) {
    line(baseline.name, baseline.iteration_s);
  }
  line("this plan", comparison.planned_s);
  if (!comparison.planned_s) return;
  if (const auto gap = comparison.gap()) {
    line("lower bound", comparison.lower_bound_s);
    fmt::print(std::cout, "  this plan is at most {:.1f} % slower than the best possible\n",
               100 * *gap);
  }
  if (const auto* faster = faster_baseline(problem, comparison.baselines, *comparison.planned_s)) {
    fmt::print(std::cout, "  '{}' is faster than this plan\n", faster->name);
  } else if (const auto* other = faster_baseline(problem, comparison.baselines,
                                                 *comparison.planned_s, Allowance::kForbidden)) {
    fmt::print(std::cout, "  '{}' is faster than this plan, but --algorithm does not allow it\n",
               other->name);
  }
}

void print_report(const Options& options, const Problem& problem, const casync::Plan& plan) {
  const std::string name = io::printable(options.plan_name());
  const std::string raw =
      plan.raw_strategy.empty() ? "" : fmt::format(" ({} where raw)", plan.raw_strategy);
  fmt::print(std::cout, "{}: {} gradients, {}{}, N = {}; {} compressed with {}\n", name,
             plan.decisions.size(), plan.strategy, raw, plan.nodes,
             count_compressed(problem.model, plan), algorithms_of(problem, plan));
}

void add_replay_remarks(const Options& options, const models::Model& model,
                        const costs::Profile& profile, SearchResult& found) {
  const std::string& raw = raw_strategy_of(found.plan);
  if (sends_raw_alone(raw)) {
    const std::string estimate = costs::AllReduceCosts(profile).remark(found.plan.nodes);
    if (!estimate.empty()) found.remarks.push_back(estimate);
  }
  if (!options.yaml()) {
    const std::string algorithm = remark_on_algorithm(model, found.plan);
    if (!algorithm.empty()) found.remarks.push_back(algorithm);
  }
  if (!found.plan.raw_strategy.empty() && !options.yaml()) {
    found.remarks.push_back(fmt::format(
        "raw gradients go by {}, which only a plan YAML says: take --output X.yaml, or replay with "
        "--topology {} --raw-allreduce",
        raw, found.plan.strategy));
  }
  if (found.transfer_order == sim::TransferOrder::kNeed) {
    found.remarks.push_back(
        options.yaml() ? "the plan is for transfer order need, in which hipress-exec cannot run it"
                       : "the plan is for --transfer-order need, which only a plan YAML says: take "
                         "--output X.yaml, or replay with hipress-sim --transfer-order need");
  }
  const bool grouped = found.plan.bulk.threshold_bytes > 0 || found.plan.batch.threshold_bytes > 0;
  if (grouped && !options.yaml()) {
    found.remarks.push_back(
        "the plan has bulk groups or batches, which only a plan YAML says: take --output X.yaml");
  }
}

}  // namespace hipress::planner
