#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "planner/problem/budget.hpp"
#include "planner/timing/evaluation.hpp"
#include "planner/timing/evaluator.hpp"

namespace hipress::planner {

/// A plan with its transfer order and simulated times.
struct TimedPlan {
  casync::Plan plan;
  sim::TransferOrder transfer_order = sim::TransferOrder::kReady;
  double iteration_s = 0;              ///< time on the requested network
  std::optional<double> upper_s = {};  ///< 90th percentile; none: unknown
};

/// True if the plans make the same decisions, with algorithms of the same names.
bool same_plan(const TimedPlan& a, const TimedPlan& b);

/// The plan's decision for gradient g, in words: "onebit, K = 16", "raw, K = 1", "raw, allreduce".
std::string describe_option(const models::Model& model, const casync::Plan& plan, std::size_t g);

/// Loss of a gradient under a decision: none if it is sent in its own dtype, otherwise the
/// algorithm's coarseness in `order` and rank, and the encodings of the plan's topology.
Coarseness coarseness_of(const models::Gradient& gradient, const casync::Plan& plan,
                         const casync::Decision& decision, const AccuracyOrder& order = {});

/// Largest loss of a gradient in the plan.
Coarseness coarseness_of(const Problem& problem, const casync::Plan& plan);

/// Simulation of the plan. Throws io::InputError if its graph is too large to `what`, such as
/// "explain".
AffordableScenario required_scenario(const Problem& problem, const TimedPlan& plan,
                                     std::string_view what);

/// Times candidates of an option set, one of which is a given plan: by estimates, many per second,
/// or by simulation on the requested network.
class Workbench {
 public:
  /// The option set is the problem's, extended by the decisions of the plans, which must be for its
  /// model and nodes. Problem::machines must be set. The problem must outlive the object.
  Workbench(const Problem& problem, const TimedPlan& plan,
            const std::vector<const TimedPlan*>& others = {});
  Workbench(const Workbench&) = delete;
  Workbench& operator=(const Workbench&) = delete;

  const Choices& choices() const { return choices_; }
  const Candidate& plan() const { return plan_; }
  /// One of the constructor's other plans.
  const Candidate& other(std::size_t i) const { return others_[i]; }

  /// Makes the candidate's plan. Groups made by hand, which option sets do not have, are those of
  /// the given plan.
  casync::Plan make(const Candidate& candidate) const;
  TimedPlan timed(const Candidate& candidate, double iteration_s) const;
  sim::TransferOrder order(const Candidate& candidate) const {
    return choices_.schemes[candidate.scheme].transfer_order;
  }
  /// True if options a and b of gradient g are alike in the given plan, where K may have no effect.
  bool same_in_plan(std::size_t g, std::uint16_t a, std::uint16_t b) const {
    return describe(g, a) == describe(g, b);
  }
  /// Loss of gradient g's option.
  Coarseness coarseness_of(std::size_t g, std::uint16_t option) const;
  /// Text of the option's decision.
  std::string describe(std::size_t g, std::uint16_t option) const;

  // ---- estimates: on network port, exact if affordable, else coarse ----

  /// Makes the candidate the base of later estimates; returns its time in ps.
  std::int64_t estimate_base(const Candidate& candidate);
  /// Estimated time in ps, or kNever if above `limit`. The candidate must have batches if the base
  /// has them, and none otherwise.
  std::int64_t estimate(const Candidate& candidate, std::int64_t limit = kNever);
  /// True if estimates equal the times on the requested network.
  bool estimates_are_exact() const;

  // ---- on the requested network ----

  /// Simulated time in seconds; unset if the graph is too large.
  std::optional<double> time_s(const Candidate& candidate);

  std::int64_t simulations() const { return simulations_; }

 private:
  Candidate add(const TimedPlan& plan);
  PatternGraph schedule(const Candidate& candidate);
  bool affords_exact(const Candidate& candidate);

  const Problem& problem_;
  const casync::Plan original_;
  Choices choices_;
  Candidate plan_;
  std::vector<Candidate> others_;
  std::optional<Evaluator> evaluator_;  // set once `choices_` is complete
  PatternSimulator timeline_;
  Candidate base_candidate_;
  Recording base_;
  bool exact_ = false;  // estimates are exact
  int until_trim_ = 0;
  std::int64_t simulations_ = 0;
};

}  // namespace hipress::planner
