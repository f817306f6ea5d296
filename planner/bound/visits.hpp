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

/// Work on a serial resource. It begins at `head` or later, and at least `tail` passes after it
/// before the iteration ends. All times in picoseconds.
struct Visit {
  double head = 0, work = 0, tail = 0;
};

/// Earliest end of all these visits to one resource, tails included, if visits may be interrupted:
/// Jackson's preemptive schedule. Reorders the visits.
double preemptive_end(std::vector<Visit>& visits);

/// Lower bound on all plans of a scheme in which few gradients matter. Options are decided one
/// gradient at a time, the largest first; every resource must be able to do the visits of the
/// decided ones in time. docs/bound.md has the proof.
class VisitBound {
 public:
  /// True if the visits of gradients are known on these machines: nodes and paths are alike, and
  /// links have no bursts.
  static bool holds_for(const Machines& machines);

  /// Use of the scheme's bulk rule.
  enum class Groups : std::uint8_t {
    kAny,     ///< the rule is weaker than the plans' rules; it determines no groups
    kByRule,  ///< the rule is that of all plans; decisions determine the groups
  };

  /// `work` is least_work() of the scheme. Times that differ by less than `grain` ps are merged.
  /// The arguments must outlive the object.
  VisitBound(const models::Model& model, const Machines& machines, const Choices& choices,
             const Scheme& scheme, const ReadyTimes& ready,
             const std::vector<std::vector<OptionWork>>& work, double grain,
             Groups groups = Groups::kAny);

  /// Lower bound of all plans, in ps; the search stops at `known`. `most_visits` limits the visits
  /// processed; more: a better bound, later.
  double least(double known, std::size_t most_visits);
  /// Number of visits processed.
  std::size_t visits() const { return looked_at_; }

 private:
  /// Visits by resource: mean port and mean codec stream, then egress, ingress and codec per node.
  using Lists = std::vector<std::vector<Visit>>;
  static constexpr std::size_t kMeanLists = 2, kListsPerNode = 3;

  struct Option {
    Lists lists;
    double end = 0;
    bool even = true;        ///< all nodes do the same
    bool in_group = false;   ///< in a group of two or more members
    casync::Groupable rule;  ///< the gradient as the bulk rule sees it
  };
  /// Decided members of a bulk group, two or more.
  struct Group {
    std::int8_t algorithm = casync::kRaw;
    std::int64_t elements = 0;
    double release = 0;               ///< time at which the last of them is ready
    std::vector<std::size_t> depths;  ///< indices of the members
    const Option* whole = nullptr;    ///< the whole group, ready at 0; null: unknown
  };
  /// Decided options of the first gradients, with a lower bound of all plans that contain them.
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
  const std::int64_t batched_bytes_;               // smaller slices may be launched together
  const std::optional<casync::Aggregation> rule_;  // set if groups follow from decisions
  PatternBook book_;
  std::size_t steps_ = 0;                     // number of steps in all patterns read so far
  std::vector<std::size_t> places_;           // places in the order of decision
  std::vector<std::vector<Option>> options_;  // per place in places_
  std::vector<Lists> rest_;                   // per depth: least visits of the later gradients
  std::vector<Visit> visits_;                 // scratch of end_of()
  std::optional<RuleGroups> rule_groups_;     // set if the rule is known
  std::vector<double> later_;                 // scratch of gather_visits(), per depth
  std::vector<Group> groups_;                 // groups of a part, in the order of their last
                                              // members
  /// Results of whole_group(), by algorithm and elements.
  std::map<std::pair<std::int8_t, std::int64_t>, std::optional<Option>> whole_groups_;
  std::size_t looked_at_ = 0;
};

}  // namespace hipress::planner
