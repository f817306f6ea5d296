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

/// What is done with a plan once there is one: passes, and what is asked about it.
namespace hipress::planner {

inline constexpr double kPassAllowance = 0.25;  ///< of the budget, beside what a search left of it

struct AnalysisOptions {
  std::string disabled_passes;  ///< with commas
  bool explain = false;
  std::string compare;  ///< a plan file or name; empty: not asked for
  std::string plan;     ///< instead of a search; empty: search
  bool report = false;  ///< a page shows the plan
  bool robust = false;
  std::string jitter;  ///< empty: none
  std::optional<double> bandwidth_uncertainty;
  std::optional<std::uint32_t> replicas;
  /// That given plans are looked at under; none: the one that they say, else ready.
  std::optional<sim::TransferOrder> order;

  bool any() const { return explain || robust || !compare.empty() || !plan.empty(); }
};

/// Takes sentences for the user.
using Warn = std::function<void(const std::string& sentence)>;

/// io::InputError for what contradicts itself.
void check(const AnalysisOptions& options, const Problem& problem);

/// A plan file, or a plan's name, for the problem; the topology is the one that a plan YAML says,
/// else `topology`; io::InputError if that is "best". Its transfer order is `order` if given, else
/// the one that a plan YAML says, else ready.
TimedPlan read_plan(const std::string& path_or_name, const Problem& problem,
                    const std::string& topology, std::optional<sim::TransferOrder> order);

/// What the search itself may spend: half of `limits` for a robust plan, since more searches
/// follow.
Limits limits_of_search(const AnalysisOptions& options, const Limits& limits);

/// What was found out, as far as it was asked for.
struct Analysis {
  TimedPlan plan;  ///< after the passes, or the robust one
  std::vector<std::string> diagnostics;
  std::vector<std::string> warnings;  ///< of the passes
  std::vector<PassReport> passes;
  std::optional<RobustChoice> robust;
  std::optional<Explanation> explanation;
  std::optional<PlanComparison> comparison;
  std::optional<plans::DenseFallback> dense;  ///< of plans that gather sparse messages
};

/// What a search left: its plan, and the budget that it used.
struct Found {
  TimedPlan plan;
  double search_s = 0;
  std::int64_t evaluations = 0;
  const std::vector<SearchResult::Finalist>& finalists;
  const std::vector<Baseline>& baselines;
  Rivals rivals = {};       ///< of the passes
  bool keeps_plan = false;  ///< no pass changes it
};

/// Polishes the plan, and finds out what was asked about it, as far as the budget allows. Throws as
/// read_plan(), and io::InputError where a plan that is given cannot be analysed.
Analysis analyse(const AnalysisOptions& options, const Problem& problem, const SearchRow& search,
                 const Found& found);

}  // namespace hipress::planner
