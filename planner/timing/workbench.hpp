#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "planner/problem/budget.hpp"
#include "planner/timing/evaluation.hpp"
#include "planner/timing/evaluator.hpp"

namespace hipress::planner {

/// A plan, the order of transfers it is made for, and what it takes.
struct TimedPlan {
  casync::Plan plan;
  sim::TransferOrder transfer_order = sim::TransferOrder::kReady;
  double iteration_s = 0;              ///< on the network asked for
  std::optional<double> upper_s = {};  ///< its 90th percentile; none: not known
};

/// They decide the same, with the same names of algorithms.
bool same_plan(const TimedPlan& a, const TimedPlan& b);

/// The plan's decision for gradient g, in words: "onebit, K = 16", "raw, K = 1", "raw, allreduce".
std::string describe_option(const models::Model& model, const casync::Plan& plan, std::size_t g);

/// How much the decision gives up of the gradient: 0 if it is sent as what it is, else the
/// algorithm's coarseness in that order, how often the plan's topology encodes it, and its rank.
Coarseness coarseness_of(const models::Gradient& gradient, const casync::Plan& plan,
                         const casync::Decision& decision, const AccuracyOrder& order = {});

/// The most that the plan gives up of a gradient.
Coarseness coarseness_of(const Problem& problem, const casync::Plan& plan);

/// How the plan is simulated. io::InputError if its graph is too large for that, which is needed to
/// do `what` ("explain") with it.
AffordableScenario required_scenario(const Problem& problem, const TimedPlan& plan,
                                     std::string_view what);

/// A plan as a candidate of an option set, and what other candidates take: approximately, many a
/// second, or on the network asked for.
class Workbench {
 public:
  /// The option set is the problem's, and whatever else the plans decide. Problem::machines must be
  /// given. The problem must outlive it. The plans must be of the problem's model and nodes.
  Workbench(const Problem& problem, const TimedPlan& plan,
            const std::vector<const TimedPlan*>& others = {});
  Workbench(const Workbench&) = delete;
  Workbench& operator=(const Workbench&) = delete;

  const Choices& choices() const { return choices_; }
  const Candidate& plan() const { return plan_; }
  /// One of the constructor's other plans.
  const Candidate& other(std::size_t i) const { return others_[i]; }

  /// The candidate's plan, with what no option set says (groups by hand) as in the constructor's
  /// plan.
  casync::Plan make(const Candidate& candidate) const;
  TimedPlan timed(const Candidate& candidate, double iteration_s) const;
  sim::TransferOrder order(const Candidate& candidate) const {
    return choices_.schemes[candidate.scheme].transfer_order;
  }
  /// Whether two of gradient g's options are the same in the constructor's plan, where K says
  /// nothing.
  bool same_in_plan(std::size_t g, std::uint16_t a, std::uint16_t b) const {
    return describe(g, a) == describe(g, b);
  }
  /// How much gradient g's option gives up.
  Coarseness coarseness_of(std::size_t g, std::uint16_t option) const;
  /// The option's decision in words.
  std::string describe(std::size_t g, std::uint16_t option) const;

  // ---- approximately: on network port, exactly where that is affordable, else coarsely ----

  /// Candidates are compared with this one from here on. Its time in ps.
  std::int64_t estimate_base(const Candidate& candidate);
  /// ps, or kNever where it is more than `limit`. The candidate must have batches if and only if
  /// the base has.
  std::int64_t estimate(const Candidate& candidate, std::int64_t limit = kNever);
  /// Whether estimates are the times on the network asked for.
  bool estimates_are_exact() const;

  // ---- on the network asked for ----

  /// Seconds; none where the graph is too large.
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
  std::optional<Evaluator> evaluator_;  // of the choices as they are at last
  PatternSimulator timeline_;
  Candidate base_candidate_;
  Recording base_;
  bool exact_ = false;  // estimates are
  int until_trim_ = 0;
  std::int64_t simulations_ = 0;
};

}  // namespace hipress::planner
