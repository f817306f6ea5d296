#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "casync/layout.hpp"
#include "casync/topology.hpp"
#include "planner/bound/costs.hpp"
#include "planner/bound/ready_times.hpp"
#include "planner/bound/rule_groups.hpp"
#include "planner/bound/work.hpp"
#include "planner/choices/choices.hpp"
#include "planner/timing/pattern.hpp"

namespace hipress::planner {

/// Work of a task on a serial resource. It begins at `head` or later. After its end, at least
/// `tail` passes until the iteration ends. All times in picoseconds.
struct Visit {
  double head = 0, work = 0, tail = 0;
};

/// Earliest time at which all these visits to one resource, with their tails, can have ended if
/// they may be interrupted: Jackson's preemptive schedule. Uses up `work`, and reorders the visits.
double preemptive_end(std::vector<Visit>& visits);

/// Lower bound on the time of all plans of a scheme, by branch and bound; suits models in which few
/// gradients matter. Options are decided one gradient at a time, the largest first. Every resource
/// must be able to do the visits of the decided gradients in time. docs/bound.md has the proof.
class VisitBound {
 public:
  /// True if this bound applies: there are several nodes, all nodes and paths are alike, and links
  /// have no bursts (network port ignores bursts).
  static bool holds_for(const Machines& machines);

  /// Meaning of the scheme's bulk rule.
  enum class Groups : std::uint8_t {
    kAny,     ///< allows all groups of the plans' rules, which decisions do not determine
    kByRule,  ///< all plans have this rule, so decisions determine the groups
  };

  /// `work` is least_work() of the scheme. Visits whose heads and tails differ by less than `grain`
  /// ps may be merged. The arguments must outlive the object.
  VisitBound(const models::Model& model, const Machines& machines, const Choices& choices,
             const Scheme& scheme, const ReadyTimes& ready,
             const std::vector<std::vector<OptionWork>>& work, double grain,
             Groups groups = Groups::kAny);

  /// Returns a lower bound on the time of all plans, in ps, or `known` if no plan takes less.
  /// Processes about `most_visits` visits at most; more: a better bound, after more time.
  double least(double known, std::size_t most_visits);
  /// Number of visits processed.
  std::size_t visits() const { return looked_at_; }

 private:
  /// Visits by resource: mean port, mean codec stream, then egress, ingress and codec of each node.
  using Lists = std::vector<std::vector<Visit>>;
  static constexpr std::size_t kMeanLists = 2, kListsPerNode = 3;

  struct Option {
    Lists lists;
    double end = 0;
    bool even = true;        ///< all nodes do the same
    bool in_group = false;   ///< in a group of two or more members
    casync::Groupable rule;  ///< the gradient as the bulk rule sees it
  };
  /// Two or more decided gradients that form a bulk group.
  struct Group {
    std::int8_t algorithm = casync::kRaw;
    std::int64_t elements = 0;
    double release = 0;               ///< time at which the last of them is ready
    std::vector<std::size_t> depths;  ///< members, as depths in the order of decision
    const Option* whole = nullptr;    ///< the whole group, ready at 0; null: unknown
  };
  /// Partial decision: options of the first gradients, and a lower bound on all plans with them.
  struct Part {
    double least = 0;
    std::vector<std::uint16_t> decided;
  };
  static bool is_later(const Part& a, const Part& b);

  Option read(std::size_t place, const PatternKey& key);
  Option read_group(std::size_t place, const PatternKey& key, const OptionWork::InGroup& group);
  template <class WorkOf>
  Option read_steps(const Pattern& pattern, double release, const WorkOf& work_of) const;
  Option of_least(std::size_t place, const OptionWork& least) const;
  bool is_affordable(const PatternKey& key) const;
  bool joins_batches(const PatternKey& key) const;
  const Option* whole_group(std::int8_t algorithm, std::int64_t elements);
  void finish(Lists lists, Option& option) const;
  void add_mean(const Step& step, const Visit& visit, Lists& lists) const;
  void add_to_nodes(const Step& step, const Visit& visit, std::uint32_t g, Lists& lists) const;
  std::vector<Visit> merged(const std::vector<Visit>& visits) const;
  void narrow(double known);
  static Visit least_of_options(std::span<const Option> options, std::size_t list);
  void join_small();
  void find_rest();
  void ask_rule();
  bool find_groups(const Part& part);
  void gather_visits(const Part& part, std::size_t list);
  double end_of(const Part& part);

  const ReadyTimes& ready_;
  const models::Model& model_;
  const casync::TopologyPair pair_;
  const std::vector<Form> forms_;  // index: 1 + algorithm; 0: raw
  const Line message_;
  const std::uint32_t nodes_;
  const double grain_;
  const bool ports_in_order_;
  const std::int64_t batched_bytes_;               // smaller slices may be launched in batches
  const std::optional<casync::Aggregation> rule_;  // set if the groups follow from the decisions
  PatternBook book_;
  std::size_t steps_ = 0;  // number of steps in all patterns read so far
  // Places in the order of backward, sorted by the order of decision.
  std::vector<std::size_t> places_;
  std::vector<std::vector<Option>> options_;  // per place in places_
  // By number of decided gradients: least visits of the undecided ones.
  std::vector<Lists> rest_;
  std::vector<Visit> visits_;              // used by end_of()
  std::optional<RuleGroups> rule_groups_;  // set if the rule is known
  // By decided gradient: its delay because of its group. Used by gather_visits().
  std::vector<double> later_;
  // Groups of a partial decision, sorted by their last members.
  std::vector<Group> groups_;
  /// Results of whole_group(), by algorithm and elements.
  std::map<std::pair<std::int8_t, std::int64_t>, std::optional<Option>> whole_groups_;
  std::size_t looked_at_ = 0;
};

}  // namespace hipress::planner
