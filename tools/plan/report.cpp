#include "tools/plan/report.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "costs/collectives.hpp"
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

/// Names of the plan's algorithms: "onebit, fp16".
std::string algorithms_of(const models::Model& model, const casync::Plan& plan) {
  return fmt::format("{}", fmt::join(plans::used_algorithms(model, plan), ", "));
}

/// Prints the lower bound of the iteration time, if it is informative.
void print_bound(const Comparison& comparison) {
  constexpr double kSaysSomething = 0.5;  // share of the plan's time
  const std::optional<double> gap = comparison.gap();
  if (!gap) return;
  if (*gap <= kSaysSomething) {
    fmt::print(std::cout,
               "  no plan that the search may choose takes less than {} ({:.1f} % less)\n",
               io::format_duration(*comparison.lower_bound_s),
               100 * (1 - *comparison.lower_bound_s / *comparison.planned_s));
  } else {
    fmt::print(std::cout,
               "  no plan takes less than {}; the distance to the best plan is unknown\n",
               io::format_duration(*comparison.lower_bound_s));
  }
}

/// Reason why a baseline is not allowed as the plan.
std::string why_forbidden(const Problem& problem, const casync::Plan& plan) {
  if (!allows(problem, plan)) return "--algorithm does not allow it";
  if (problem.topology != "best" && plan.topology != problem.topology) {
    return fmt::format("uses topology {}: --topology BEST allows that", plan.topology);
  }
  if (plan.nodes != problem.nodes) {
    return fmt::format("has {} nodes instead of {}, with the GPUs at another level", plan.nodes,
                       problem.nodes);
  }
  return "has groups, which only a plan YAML can hold: --output X.yaml allows that";
}

}  // namespace

std::string in_lines(const std::string& sentence) {
  std::string lines;
  int brackets = 0;
  for (std::size_t i = 0; i < sentence.size(); ++i) {
    const char c = sentence[i];
    brackets += c == '(' ? 1 : c == ')' ? -1 : 0;
    const bool ends = brackets == 0 && c == ';' && sentence.compare(i, 2, "; ") == 0;
    lines += ends ? "\n  " : std::string(1, c);
    if (ends) ++i;
  }
  return lines;
}

std::string machines_of(const PreparedRequest& prepared, const Problem& problem) {
  const std::string machines =
      costs::describe_machines(prepared.profile, problem.machines->cluster, prepared.model);
  if (prepared.request.machines.names_profile()) return machines;
  return fmt::format("{}; this profile {}", machines, costs::kWhyDefault);
}

void print_table(const Options& options, const Problem& problem, const costs::Profile& profile,
                 const Comparison& comparison) {
  fmt::print(std::cout, "\nsimulated iteration, profile {}, network {} (in 8 runs of 10):\n",
             profile.name, options.request.request.network);
  const auto line = [&](std::string_view name, const std::optional<double>& seconds,
                        const std::optional<sim::Response>& response, std::string_view what) {
    fmt::print(std::cout, "  {:<18}{:<30}{}\n", name,
               seconds ? with_interval(*seconds, response, comparison.spread) : "not simulated",
               io::as_command_line(what));
  };
  // If the nodes of a plan are hosts and those of the problem GPUs, or vice versa, names their
  // number.
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
  line("this plan", comparison.planned_s, comparison.planned, "as written to the file");
  const bool all_ranges =
      comparison.planned && std::ranges::all_of(comparison.baselines, [](const Baseline& one) {
        return !one.iteration_s || one.response;
      });
  if (!all_ranges) {
    fmt::print(std::cout,
               "  rows without a range: the budget left no time for it; give a larger --budget\n");
  }
  if (!comparison.planned_s) return;
  print_bound(comparison);
  if (problem.learning) return;  // faster steps do not imply faster training
  if (const auto* faster = faster_baseline(problem, comparison.baselines, *comparison.planned_s)) {
    fmt::print(std::cout, "  '{}' is faster than this plan\n", faster->name);
  } else if (const auto* other = faster_baseline(problem, comparison.baselines,
                                                 *comparison.planned_s, Allowance::kForbidden)) {
    fmt::print(std::cout, "  '{}' is faster than this plan, but {}\n", other->name,
               why_forbidden(problem, other->plan));
  }
}

void print_throughput(const models::Throughput& speed) {
  fmt::print(std::cout, "{:.4g} {}/s{}\n", speed.units_per_s, speed.unit,
             speed.mfu ? fmt::format(", {:.1f} % of the GPUs' peak (MFU)", 100 * *speed.mfu) : "");
}

void print_report(const Options& options, const Problem& problem, const casync::Plan& plan) {
  const std::string name = io::printable(options.plan_name());
  const std::string by = raw_topology_of(plan);
  const std::string raw = by == plan.topology ? "" : fmt::format(" ({} where raw)", by);
  const std::size_t count = plans::count_compressed(problem.model, plan);
  fmt::print(std::cout, "{}: {} gradients, {}{}, N = {}; {}\n", name, plan.decisions.size(),
             plan.topology, raw, plan.nodes,
             count == 0
                 ? "none compressed"
                 : fmt::format("{} compressed with {}", count, algorithms_of(problem.model, plan)));
}

}  // namespace hipress::planner
