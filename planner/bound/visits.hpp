#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/bound/work.hpp"
#include "planner/timing/pattern.hpp"

namespace hipress::planner {

/// Work on a serial resource that cannot begin before `head`, and that is followed by `tail` at the
/// least before the iteration ends. All times in picoseconds.
struct Visit {
  double head = 0, work = 0, tail = 0;
};

/// When the last of these visits to one resource and what follows it is over at the earliest, if
/// visits may be interrupted: Jackson's preemptive schedule. Reorders the visits.
double preemptive_end(std::vector<Visit>& visits);

/// A lower bound on all plans of a scheme where few gradients matter: options are decided one
/// gradient after the other, the largest first, and every resource must be able to do the visits of
/// the decided ones in time. docs/bound.md says why that holds.
class VisitBound {
 public:
  /// Whether the visits of a gradient are known on these machines: not where nodes or paths differ,
  /// and not where links have bursts.
  static bool holds_for(const Machines& machines);

  /// `work` is least_work() of the scheme. Times that differ by less than `grain` are not told
  /// apart. The arguments must outlive it.
  VisitBound(const models::Model& model, const Machines& machines, const Choices& choices,
             const Scheme& scheme, const ReadyTimes& ready,
             const std::vector<std::vector<OptionWork>>& work, double grain);

  /// Picoseconds that no plan takes less than; it is not looked for above `known`. `most_visits`
  /// that are looked at: more, a better bound, later.
  double least(double known, std::size_t most_visits);

 private:
  /// Visits by resource: the mean port and codec stream, then per node egress, ingress and codec.
  using Lists = std::vector<std::vector<Visit>>;
  static constexpr std::size_t kMeanLists = 2, kListsPerNode = 3;

  struct Option {
    Lists lists;  ///< empty: not known
    double end = 0;
    bool even = true;  ///< all nodes do the same
  };
  /// Options of the gradients that come first, and what all plans with them take.
  struct Part {
    double least = 0;
    std::vector<std::uint16_t> decided;
  };
  static bool is_later(const Part& a, const Part& b);

  Option read(std::size_t place, const PatternKey& key);
  void add_mean(const Step& step, const Visit& visit, Lists& lists) const;
  void add_to_nodes(const Step& step, const Visit& visit, std::uint32_t g, Lists& lists) const;
  std::vector<Visit> merged(const std::vector<Visit>& visits) const;
  void narrow(double known);
  void find_rest();
  double end_of(const Part& part);

  const ReadyTimes& ready_;
  const std::uint32_t nodes_;
  const double grain_;
  const bool ports_in_order_;
  PatternBook book_;
  std::size_t steps_ = 0;                     // of all patterns that were read
  std::vector<std::size_t> places_;           // in the order of decision
  std::vector<std::vector<Option>> options_;  // per place in places_
  std::vector<Lists> rest_;                   // per depth: what those after it visit at least
  std::vector<Visit> visits_;                 // of end_of()
  std::size_t looked_at_ = 0;
};

}  // namespace hipress::planner
