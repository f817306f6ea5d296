#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/interrupt_flag.hpp"
#include "planner/advice/request.hpp"
#include "planner/analysis/verdict.hpp"
#include "planner/problem/levels.hpp"

/// Advice on compression: a request becomes a plan, a comparison with its rivals, and a verdict.
///
/// Example:
///
///     planner::Request request;
///     request.input = "vgg19";
///     request.nodes = 8;
///     request.topology = "BEST";
///     request.machines.profile = "a100-10g";
///     request.times.compute_time = "120ms";
///     const planner::PreparedRequest prepared(request, planner::PlanForm::kYaml);
///     const planner::Advice advice = planner::advise(prepared);
///     std::puts(advice.verdict.sentence.c_str());  // "compress (99 % sure): …"
///     const casync::Plan& plan = advice.found.plan;
///
/// The constructor of PreparedRequest throws io::InputError for an error in the request.
namespace hipress::planner {

/// Callbacks during advise(). All but `warn` may be empty.
struct Hooks {
  Warn warn = [](const std::string&) {};  ///< receives warnings, all before the search begins
  /// Receives the used share of the search's budget, and the best time so far in seconds. Like
  /// `searched`, it may be called on a thread of the search.
  std::function<void(double share, double best_s)> progress = {};
  /// Called at the end of each search, after its last `progress`.
  std::function<void()> searched = {};
  /// Set from outside to interrupt; must stay valid until advise() returns. Searches that optimise
  /// then end with the best plan so far.
  io::InterruptFlag interrupted = {};
};

/// A checked request, with all its inputs read. Its constructor starts the time limit of the
/// simulations (SimulationBudget), so a prepared request serves one advise().
class PreparedRequest {
 public:
  /// Reads all inputs. Rejects impossible requests before any long computation: throws
  /// io::InputError that names file and line, or the option.
  PreparedRequest(const Request& request, PlanForm form, const Hooks& hooks = {});
  PreparedRequest(const PreparedRequest&) = delete;
  PreparedRequest& operator=(const PreparedRequest&) = delete;

  /// True if a plan is searched for, false if one is given.
  bool searches() const { return request.analysis.plan.empty(); }
  /// True if a search optimises the plan. An interrupt then ends it with the best plan so far.
  bool optimises() const { return search.optimises && searches(); }
  /// Share of the budget for each level of GPUs: 0.5 if `other` is set, else 1.
  double share_of_level() const;
  /// Part of share_of_level() for the search itself; the rest is for plans without compression.
  double share_of_search() const;
  static constexpr double kShareUncompressed = 0.5;

  const std::shared_ptr<const Learning> learning;  ///< results of the pilot; null: no pilot
  const Request request;                 ///< the given request, with algorithms_of() filled in
  const PlanForm form;                   ///< required form of the plan
  const SearchRow& search;               ///< search that makes the plan
  std::vector<std::string> diagnostics;  ///< assumptions made while reading, as sentences
  const models::Model model;             ///< model with the request's times
  Problem problem;                       ///< points into the other members
  /// Number of nodes of the given cluster, each with one or several GPUs.
  std::uint32_t given_nodes = 0;
  costs::Profile profile;            ///< costs of the machines
  costs::Profile secopa_profile;     ///< costs for SeCoPa's formulas
  std::optional<Machines> machines;  ///< set by read_machines()
  /// The problem with the GPUs at the other level (planner/problem/levels.hpp), for which half of
  /// the budget is used; null: one level only. If the plan is SeCoPa's text, only plans without
  /// compression are searched at that level, as rivals.
  std::unique_ptr<const OtherLevels> other;
  const Hooks hooks;
  Extent baselines = Extent::kAll;  ///< baselines that find_advice() simulates

 private:
  void read_machines();
  void keep_profiled();
  void add_foreign_costs();
  void warn_of_assumptions() const;
};

/// Answer to a request. It points into the prepared request, which must outlive it.
struct Advice {
  SearchResult found;                ///< the plan, after passes and in one topology
  double search_s = 0;               ///< duration of the searches
  const Problem* problem = nullptr;  ///< problem of the plan, at its level of GPUs
  /// With a pilot, there is one search for each list of algorithms from Learning::bounded(). These
  /// are the problems of the search that gave the plan: with the GPUs at the request's level
  /// (planner/problem/levels.hpp), and at the other level, if there is one. Both are null without
  /// such searches.
  std::shared_ptr<const Problem> bounded = {}, bounded_other = {};
  /// The problem at the request's level of GPUs, as searched.
  const Problem& own(const PreparedRequest& prepared) const {
    return bounded ? *bounded : prepared.problem;
  }
  /// True if a framework runs the plan as it is; passes then leave it unchanged.
  bool keeps_plan = false;
  Comparison comparison;
  Verdict verdict;
  Analysis analysis;
};

/// Finds a plan, and compares it with the baselines. A faster one replaces it if may_be_plan()
/// allows that. If compression saves no more than the tolerance, the plan compresses nothing.
Advice find_advice(const PreparedRequest& prepared);

/// Improves the plan by passes, runs the requested analyses, computes the lower bound, and judges
/// the plan. Throws io::InputError if a given plan cannot be analysed.
void complete(const PreparedRequest& prepared, Advice& advice);

/// Calls find_advice() and complete().
Advice advise(const PreparedRequest& prepared);

/// Like advise(), but without passes and bound, and with cheap baselines only (Extent::kCheap).
Advice advise_briefly(PreparedRequest& prepared);

}  // namespace hipress::planner
