#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "casync/layout.hpp"
#include "planner/choices/choices.hpp"
#include "planner/timing/evaluation.hpp"
#include "planner/timing/evaluator.hpp"

namespace hipress::planner {

/// Option set that is small enough to simulate every plan: each gradient is raw or takes one of the
/// problem's algorithms, K is 1 or N, and nothing is grouped.
inline Choices few_choices(Problem problem) {
  problem.grouping = Grouping::kNone;
  Choices choices = make_choices(problem);
  const auto nodes = static_cast<std::int32_t>(problem.nodes);
  for (auto& options : choices.gradients) {
    std::erase_if(options, [&](const casync::Decision& decision) {
      return decision.partitions != 1 && decision.partitions != nodes;
    });
  }
  return choices;
}

/// The fastest plan of an option set, found by simulating every plan on the problem's network.
class Fastest {
 public:
  Fastest(const Problem& problem, const Choices& choices)
      : problem_(problem),
        choices_(choices),
        order_(casync::backward_order(problem.model)),
        evaluator_(problem, choices) {
    for (std::uint32_t scheme = 0; scheme < choices.schemes.size(); ++scheme) {
      visited_ = {scheme, std::vector<std::uint16_t>(order_.size(), 0)};
      base_.reset();
      visit(0);
    }
  }

  const Candidate& candidate() const { return best_; }
  double iteration_s() const { return casync::to_seconds(casync::Picoseconds(best_time_)); }
  std::int64_t plans() const { return plans_; }  ///< number of plans simulated

 private:
  /// Decides the gradients from `place` on, in the order of backward. Plans that differ only in the
  /// last gradients share the beginning of their timeline.
  void visit(std::size_t place) {
    if (place == order_.size()) {
      ++plans_;
      const std::int64_t time = time_of(visited_);
      if (time < best_time_) best_ = visited_;
      best_time_ = std::min(best_time_, time);
      return;
    }
    const bool shares = place + std::min<std::size_t>(2, order_.size()) == order_.size();
    if (shares && uses_patterns()) base_ = timeline_.record(evaluator_.exact(visited_));
    const std::uint32_t gradient = order_[place];
    for (std::uint16_t i = 0; i < choices_.gradients[gradient].size(); ++i) {
      visited_.options[gradient] = i;
      visit(place + 1);
    }
  }

  bool uses_patterns() const {
    return problem_.machines->network == sim::Network::kPort && evaluator_.can_be_exact(visited_);
  }

  std::int64_t time_of(const Candidate& candidate) {
    if (uses_patterns()) {
      return timeline_.run(evaluator_.exact(candidate), best_time_, base_ ? &*base_ : nullptr);
    }
    const casync::Plan plan = make_plan(problem_, choices_, candidate.scheme, candidate.options);
    const sim::TransferOrder order = choices_.schemes[candidate.scheme].transfer_order;
    return casync::from_seconds(
               simulated_iteration_s(problem_.model, plan, *problem_.machines, order))
        .count();
  }

  const Problem& problem_;
  const Choices& choices_;
  const std::vector<std::uint32_t> order_;
  Evaluator evaluator_;
  PatternSimulator timeline_;
  std::optional<Recording> base_;
  Candidate visited_, best_;
  std::int64_t best_time_ = kNever;
  std::int64_t plans_ = 0;
};

}  // namespace hipress::planner
