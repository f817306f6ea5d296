#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/analysis/compare.hpp"
#include "planner/analysis/explain.hpp"
#include "planner/analysis/robust.hpp"
#include "planner/baselines/baselines.hpp"
#include "planner/search/passes/runner.hpp"
#include "plans/plan_file.hpp"

/// Steps after the search: passes, and the requested analyses of the plan.
namespace hipress::planner {

/// Budget of the passes, as a share of the search's. They also get what the search has left.
inline constexpr double kPassAllowance = 0.25;

struct AnalysisOptions {
  std::string disabled_passes;  ///< names, separated by commas
  bool explain = false;
  std::string compare;  ///< plan file or name; empty: no comparison
  std::string plan;     ///< given plan; empty: search
  bool report = false;  ///< a report page is written, which shows the plan
  bool robust = false;
  std::string jitter;  ///< text for sim::Jitter::parse(); empty: none
  std::optional<double> bandwidth_uncertainty;
  std::optional<std::uint32_t> replicas;
  /// Transfer order for given plans; unset: the plan's own, or ready if it has none.
  std::optional<sim::TransferOrder> order;

  bool any() const { return explain || robust || !compare.empty() || !plan.empty(); }
};

/// Receives a warning for the user, as a sentence.
using Warn = std::function<void(const std::string& sentence)>;

/// Throws io::InputError for contradictory options.
void check(const AnalysisOptions& options, const Problem& problem);

/// Reads a plan file, or makes the named plan for the problem. The topology is that of the plan
/// YAML, or `topology` if the plan names none; "best" is then refused with io::InputError. The
/// transfer order is `order` if set, otherwise that of the plan YAML, or ready.
TimedPlan read_plan(const std::string& path_or_name, const Problem& problem,
                    const std::string& topology, std::optional<sim::TransferOrder> order);

/// Limits of the search itself: half of `limits` if a robust plan is requested.
Limits limits_of_search(const AnalysisOptions& options, const Limits& limits);

/// Results of the requested analyses, within the budget.
struct Analysis {
  TimedPlan plan;  ///< plan after the passes, or the robust one
  std::vector<std::string> diagnostics;
  std::vector<std::string> warnings;  ///< warnings of the passes
  std::vector<PassReport> passes;
  std::optional<RobustChoice> robust;
  std::optional<Explanation> explanation;
  std::optional<PlanComparison> comparison;
  /// Dense fallback, for plans that gather sparse messages.
  std::optional<plans::DenseFallback> dense;
};

/// Result of a search, with the budget that it used.
struct Found {
  TimedPlan plan;
  double search_s = 0;
  std::int64_t evaluations = 0;
  const std::vector<SearchResult::Finalist>& finalists;
  const std::vector<Baseline>& baselines;
  Rivals rivals = {};       ///< rivals for the passes
  bool keeps_plan = false;  ///< passes leave it unchanged
};

/// Improves the plan by passes, and runs the requested analyses within the budget. Throws as
/// read_plan() does, and io::InputError if a given plan cannot be analysed.
Analysis analyse(const AnalysisOptions& options, const Problem& problem, const SearchRow& search,
                 const Found& found);

}  // namespace hipress::planner
