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
/// Errors in a request are io::InputErrors of the PreparedRequest.
namespace hipress::planner {

/// Callbacks during advise(). All but `warn` may be empty.
struct Hooks {
  Warn warn = [](const std::string&) {};  ///< called before the search begins
  /// Progress of the search: used share of the budget, and best time so far in seconds. May be
  /// called on a thread of the search, like `searched`.
  std::function<void(double share, double best_s)> progress = {};
  std::function<void()> searched = {};  ///< called after the last progress of a search
  /// Set from outside; must stay valid until advise() returns. Searches that optimise then end with
  /// the best plan so far.
  io::InterruptFlag interrupted = {};
};

/// A checked request, with everything that it names read in. Construction starts the budget for
/// simulations beside the search, so a prepared request serves one advise().
class PreparedRequest {
 public:
  /// Reads all inputs, and rejects impossible requests before any long computation: io::InputError
  /// with file, line or option.
  PreparedRequest(const Request& request, PlanForm form, const Hooks& hooks = {});
  PreparedRequest(const PreparedRequest&) = delete;
  PreparedRequest& operator=(const PreparedRequest&) = delete;

  /// True if a plan is searched for, false if one is given.
  bool searches() const { return request.analysis.plan.empty(); }
  /// True if passes polish the plan, and an interrupt ends the search with the best plan so far.
  bool optimises() const { return search.optimises && searches(); }
  /// Share of the budget for each level of GPUs.
  double share_of_level() const;
  /// Part of share_of_level() for the search itself; the rest is for the best plan without
  /// compression.
  double share_of_search() const;
  static constexpr double kShareUncompressed = 0.5;

  const std::shared_ptr<const Learning> learning;  ///< results of the pilot; null: no pilot
  const Request request;                           ///< request as given, with its algorithms named
  const PlanForm form;                             ///< required form of the plan
  const SearchRow& search;                         ///< search that makes the plan
  std::vector<std::string> diagnostics;            ///< assumptions made
  const models::Model model;                       ///< model with the request's times
  Problem problem;                                 ///< points into the other members
  std::uint32_t given_nodes = 0;     ///< number of nodes of the given cluster, each of one or
                                     ///< several GPUs
  costs::Profile profile;            ///< costs of the machines
  costs::Profile secopa_profile;     ///< costs for SeCoPa's formulas
  std::optional<Machines> machines;  ///< set by read_machines()
  /// The problem with the GPUs at the other level, which gets half of the budget; null: one level
  /// only. A plan in SeCoPa's text stays at the given level, but its rival may be at the other one.
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
  /// With a pilot: the problems that were searched, at the given and at the other level of GPUs.
  /// Their algorithms are only those within the plan's limit on the number of steps. Null without a
  /// pilot.
  std::shared_ptr<const Problem> bounded = {}, bounded_other = {};
  /// The problem at the request's level of GPUs, as searched.
  const Problem& own(const PreparedRequest& prepared) const {
    return bounded ? *bounded : prepared.problem;
  }
  bool keeps_plan = false;  ///< the plan is what a framework runs; passes keep it
  Comparison comparison;
  Verdict verdict;
  Analysis analysis;
};

/// Finds a plan, and compares its time with the baselines'. A faster baseline replaces it. The plan
/// compresses nothing if compression saves no more than the tolerance.
Advice find_advice(const PreparedRequest& prepared);

/// Polishes the plan, runs the requested analyses, bounds the time of all plans, and judges. Throws
/// io::InputError if an analysis of a given plan is impossible.
void complete(const PreparedRequest& prepared, Advice& advice);

/// Calls find_advice() and complete().
Advice advise(const PreparedRequest& prepared);

/// Like advise(), but without passes and bound, and with cheap baselines alone.
Advice advise_briefly(PreparedRequest& prepared);

}  // namespace hipress::planner
