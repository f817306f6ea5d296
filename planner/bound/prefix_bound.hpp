#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "planner/bound/ready_times.hpp"
#include "planner/bound/step_tails.hpp"
#include "planner/bound/work.hpp"
#include "planner/timing/evaluator.hpp"

namespace hipress::planner {

/// Picoseconds of work of one node, or of all nodes together.
struct NodeLoad {
  std::int64_t egress = 0, ingress = 0, codec = 0;
};

/// One option of one gradient, as its pattern says.
struct PrefixOption {
  std::uint16_t option = 0;  ///< index into Choices::gradients
  const Pattern* pattern = nullptr;
  std::shared_ptr<const StepTails> tails;
  std::vector<NodeLoad> loads;  ///< per node, then of all together
  /// Per node: the longest tails of its steps on its egress and on its codec stream.
  std::vector<std::int64_t> egress_tails, codec_tails;
  double end = 0;                              ///< ps: when the gradient is through at the earliest
  std::int64_t port_tail = 0, codec_tail = 0;  ///< behind the last of its work there
};

/// What is still to do behind a simulated prefix of a plan, at the least. A *prefix* is the options
/// of the gradients that backward completes first; the others may have any option.
class PrefixBound {
 public:
  /// As PrefixSearch.
  PrefixBound(Evaluator& evaluator, std::uint32_t scheme, const ReadyTimes& ready,
              const std::vector<std::vector<OptionWork>>& work);

  /// Leaves out options with which no plan takes less than `time`, and prepares at_least(); whether
  /// every gradient has an option left.
  bool prepare(std::int64_t time);

  /// Options of the gradient at a place in the order of backward.
  const std::vector<PrefixOption>& options(std::size_t place) const { return options_[place]; }
  /// All gradients, each with some option.
  const PatternGraph& any() const { return any_; }

  /// A chosen option joins the prefix; and leaves it.
  void push(const PrefixOption& option);
  void pop();
  /// Picoseconds that all plans with the prefix take at least, if `state` is theirs before the
  /// first gradient that it has not released.
  std::int64_t at_least(const TimelineState& state);
  /// Deadline::loads of plans with the prefix that take `limit` or less. `state` is as for
  /// at_least(), which must not be above the limit. Valid until the next call.
  const std::vector<std::int64_t>& loads(const TimelineState& state, std::int64_t limit);

 private:
  /// A choice for all gradients from a place on, on one node or all.
  struct Point {
    std::int64_t port = 0, codec = 0;
  };

  void read(std::size_t option, const std::vector<std::vector<OptionWork>>& work);
  PrefixOption read(const PlacedUnit& unit);
  void read_tails(const PlacedUnit& unit, PrefixOption& one) const;
  static void count_least_of_nodes(PrefixOption& one);
  std::shared_ptr<const StepTails> tails_of(const Pattern& pattern);
  std::vector<Point> frontier(std::size_t place, std::size_t scope) const;
  static void keep_least(std::vector<Point>& points);
  static std::int64_t least(const Point& base, const std::vector<Point>& frontier);
  std::int64_t now_of(const TimelineState& state) const;
  std::int64_t by_work(const TimelineState& state, std::int64_t now) const;
  Point base_of(const TimelineState& state, std::int64_t now, std::uint32_t node) const;
  std::int64_t by_paths(const TimelineState& state, std::int64_t now);
  std::int64_t by_queue(const TimelineState::Queue& queue, std::int64_t& free) const;
  std::int64_t by_path(const PrefixOption& option, std::int64_t ready) const;

  Evaluator& evaluator_;
  const ReadyTimes& ready_;
  const std::uint32_t scheme_;
  PatternGraph any_;
  std::uint32_t nodes_ = 1;
  std::vector<std::vector<PrefixOption>> options_;  // by place
  std::map<const Pattern*, std::shared_ptr<const StepTails>> tails_;
  /// By place, and by node and for all together: of all choices from there on those that no other
  /// is better than on both resources, in the order of port work.
  std::vector<std::vector<std::vector<Point>>> frontiers_;
  std::int64_t least_port_tail_ = 0, least_codec_tail_ = 0;
  std::vector<const PrefixOption*> prefix_;
  std::vector<NodeLoad> chosen_;                        // of the prefix, as PrefixOption::loads
  std::vector<std::int64_t> egress_free_, codec_free_;  // per node, of by_paths()
  std::vector<std::int64_t> loads_;                     // by sort of queue and node
};

}  // namespace hipress::planner
