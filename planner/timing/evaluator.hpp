#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "casync/layout.hpp"
#include "casync/strategy.hpp"
#include "planner/choices/choices.hpp"
#include "planner/timing/timeline.hpp"

namespace hipress::planner {

/// A plan of an option set, as indices into it.
struct Candidate {
  std::uint32_t scheme = 0;
  std::vector<std::uint16_t> options;  ///< per gradient
  bool operator==(const Candidate&) const = default;
};

/// Whether on network port all nodes do the same where their tasks are the same, and nothing but a
/// link's messages slow each other: then Timeline is all that there is to simulate.
bool nodes_are_alike(const costs::Cluster& cluster);

/// Puts candidates of one problem's option set together for Timeline.
class Evaluator {
 public:
  /// Problem::machines must be given. The arguments must outlive it.
  Evaluator(const Problem& problem, const Choices& choices);

  /// Whether Timeline's exact times are those of network port on these machines: not where
  /// transfers are slowed by others than transfers, where nodes or paths differ, or where hosts'
  /// cores are shared.
  bool has_exact() const { return exact_; }

  /// Coarse: for any candidate. Not to be called by two threads at once.
  Schedule coarse(const Candidate& candidate);
  /// Exact, if can_be_exact(): folded where the graph can be, or where
  /// folded_only() (then with every slice as long as the first), else whole. Valid until the
  /// next trim(). Not to be called by two threads at once.
  Schedule exact(const Candidate& candidate);
  /// The same, and never folded.
  Schedule whole(const Candidate& candidate);
  /// Folded, every slice as long as the first: where the graph can be folded at least so.
  Schedule folded(const Candidate& candidate);
  bool can_be_exact(const Candidate& candidate) const {
    const Scheme& scheme = choices_.schemes[candidate.scheme];
    return exact_ && scheme.batch.threshold_bytes == 0;
  }

  /// PatternBook::set_stop() of exact patterns.
  void set_stop(std::function<bool()> stop) { exact_book_.set_stop(std::move(stop)); }

  /// Frees memory if exact patterns take too much; exact schedules made before are invalid then.
  void trim();

  /// One node's codec and port work of a gradient that is synchronised on its own, in ps.
  struct Load {
    double codec = 0, port = 0;
  };
  Load load(std::uint32_t scheme, std::size_t gradient, std::uint16_t option);

  const Choices& choices() const { return choices_; }

 private:
  struct Unit {
    std::uint32_t position;  ///< of its last member in the order of backward
    std::uint32_t index;     ///< a gradient's, or from their number on a group's
    std::int64_t elements;
    casync::Decision decision;
    Factors factors = {};  ///< that stand for it
  };
  Schedule schedule(const Candidate& candidate, Fidelity fidelity);
  void lay_out(const Candidate& candidate);
  void group(const Candidate& candidate);
  /// What a gradient sends with an algorithm, as far as the rule for bulk groups sees it.
  struct Sent {
    Factors factors;
    std::int64_t bytes = 0;
  };
  const Sent& sent(std::uint32_t g, std::int8_t algorithm);
  bool folds(const Unit& unit, std::uint32_t scheme) const;
  bool has_coarse(std::uint32_t scheme) const;
  PatternBook& book(Fidelity fidelity) {
    return fidelity == Fidelity::kCoarse ? coarse_book_ : exact_book_;
  }
  const Pattern& pattern(const Unit& unit, std::uint32_t scheme, Fidelity fidelity);
  const Pattern& pattern_of_gradient(std::uint32_t g, std::uint16_t option, std::uint32_t scheme,
                                     Fidelity fidelity);
  PatternKey key(std::int64_t elements, const casync::Decision& decision, const Factors& factors,
                 std::uint32_t scheme, Fidelity fidelity) const;
  const casync::Strategy* strategy_of(const casync::Decision& decision,
                                      std::uint32_t scheme) const {
    return &carriers_[scheme].of(casync::algorithm_at(choices_.algorithms, decision.algorithm));
  }

  const Problem& problem_;
  const Choices& choices_;
  PatternBook coarse_book_, exact_book_;
  const bool exact_;
  std::vector<std::uint32_t> order_;          // gradients as backward completes them
  std::vector<std::int64_t> ready_;           // per place in that order, ps
  std::vector<std::uint32_t> round_;          // per place
  std::vector<casync::Groupable> groupable_;  // per place, with the candidate's algorithms
  std::int64_t compute_end_ = 0;
  std::vector<casync::Carriers> carriers_;  // per scheme
  std::vector<Unit> units_;                 // of the candidate at hand
  std::vector<std::optional<Sent>> sent_;   // by gradient and, raw first, algorithm
  const Candidate* candidate_ = nullptr;
  std::vector<std::size_t> first_option_;  // per gradient: its first place in what follows
  /// Of gradients on their own, by strategy and fidelity; null: not looked up yet.
  std::map<std::pair<const casync::Strategy*, Fidelity>, std::vector<const Pattern*>> singles_;
};

/// A plan's iteration on network port in ps, from patterns: folded with every slice as long as the
/// first. It must be foldable at least so, without batches, on machines that
/// Evaluator::has_exact() holds for. sim::Stopped where Machines::budget is over.
std::int64_t folded_iteration(const models::Model& model, const casync::Plan& plan,
                              const Machines& machines, sim::TransferOrder order);

}  // namespace hipress::planner
