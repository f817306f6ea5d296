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

/// Whether to compress, and how: a request becomes a plan, what it is compared with, and a verdict.
namespace hipress::planner {

/// What happens while advice is worked out. All but `warn` may be empty.
struct Hooks {
  Warn warn = [](const std::string&) {};  ///< called before the search begins
  /// Of the search: the share of the budget that is used, and the best time so far in seconds. Like
  /// `searched`, perhaps on a thread of the search's.
  std::function<void(double share, double best_s)> progress = {};
  std::function<void()> searched = {};  ///< after the last progress of a search
  /// Set from outside, and there until advise() has returned: searches that optimise end with the
  /// best plan so far.
  io::InterruptFlag interrupted = {};
};

/// A request of which everything that it names has been read and checked, and what it points to.
/// The budget for simulations beside the search begins with it, so it is for one advise().
class PreparedRequest {
 public:
  /// Reads everything, and refuses what cannot be done before anything takes long: io::InputError
  /// with file, line or option.
  PreparedRequest(const Request& request, PlanForm form, const Hooks& hooks = {});
  PreparedRequest(const PreparedRequest&) = delete;
  PreparedRequest& operator=(const PreparedRequest&) = delete;

  bool searches() const { return request.analysis.plan.empty(); }  ///< else a plan is given
  /// Passes polish the plan, and an interrupt ends the search with the best so far.
  bool optimises() const { return search.optimises && searches(); }
  /// The share of the budget for one level of GPUs.
  double share_of_level() const;
  /// The share of that for the search itself; the rest is for the best plan without compression.
  double share_of_search() const;
  static constexpr double kShareUncompressed = 0.5;

  const std::shared_ptr<const Learning> learning;  ///< what the pilot measured; null: none
  const Request request;                           ///< as it was given, with its algorithms named
  const PlanForm form;                             ///< that the plan must have
  const SearchRow& search;                         ///< that makes the plan
  std::vector<std::string> diagnostics;            ///< what was assumed
  const models::Model model;                       ///< with the times that the request gives it
  Problem problem;                                 ///< which points to the others
  std::uint32_t given_nodes = 0;                   ///< of the cluster, each perhaps of several GPUs
  costs::Profile profile;                          ///< of the machines
  costs::Profile secopa_profile;                   ///< of SeCoPa's formulas
  std::optional<Machines> machines;                ///< made by read_machines()
  /// The GPUs at another level, for which half of the budget is then; null: they stay. A plan of
  /// SeCoPa's text is for the given level, and may have its rival at another.
  std::unique_ptr<const OtherLevels> other;
  const Hooks hooks;

 private:
  void read_machines();
  void keep_profiled();
  void add_foreign_costs();
  void warn_of_limits() const;
  void warn_of_assumptions() const;
};

/// What came of a request. It points into the prepared request, which must outlive it.
struct Advice {
  SearchResult found;                ///< the plan, after passes and in one topology
  double search_s = 0;               ///< that the searches took
  const Problem* problem = nullptr;  ///< that the plan is of: with GPUs at which level
  /// With a pilot, that problem with the algorithms that slow learning no more than the plan's
  /// coarsest may; null without.
  std::shared_ptr<const Problem> bounded = {}, bounded_other = {};
  /// The request's problem at the level of GPUs that it says, as the plan was searched.
  const Problem& own(const PreparedRequest& prepared) const {
    return bounded ? *bounded : prepared.problem;
  }
  bool keeps_plan = false;  ///< the plan is what a framework runs: passes leave it as it is
  Comparison comparison;
  Verdict verdict;
  Analysis analysis;
};

/// Finds a plan and compares its time with those of baselines. The plan is theirs if they are
/// faster, and compresses nothing where that saves no more than the tolerance.
Advice find_advice(const PreparedRequest& prepared);

/// Polishes the plan that was found, says what was asked about it, bounds what any plan could
/// reach, and judges. Throws io::InputError where what was asked about a given plan cannot be
/// answered.
void complete(const PreparedRequest& prepared, Advice& advice);

/// Both.
Advice advise(const PreparedRequest& prepared);

}  // namespace hipress::planner
