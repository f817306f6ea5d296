#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "casync/layout.hpp"
#include "casync/topology.hpp"
#include "planner/choices/choices.hpp"
#include "planner/timing/pattern_simulator.hpp"

namespace hipress::planner {

/// A plan of an option set, as indices into Choices.
struct Candidate {
  std::uint32_t scheme = 0;
  std::vector<std::uint16_t> options;  ///< one per gradient
  bool operator==(const Candidate&) const = default;
};

/// True if, on network port, equal tasks take equal time on all nodes, and only transfers on the
/// same link slow each other down. PatternSimulator then models all effects.
bool nodes_are_alike(const costs::Cluster& cluster);

/// Makes the PatternGraph of a candidate, the input of PatternSimulator. Its fidelities are:
/// - coarse: a rough pattern per gradient; quick, for any candidate;
/// - whole: every task of every node;
/// - folded: one node stands for all, and every slice is as long as the first.
/// Whole graphs, and folded ones with equal slices, are exact if nodes_are_alike(): their times
/// equal those of sim::simulate().
class Evaluator {
 public:
  /// Problem::machines must be given. Both arguments must outlive the evaluator.
  Evaluator(const Problem& problem, const Choices& choices);

  /// Coarse graph of any candidate. Not thread-safe.
  PatternGraph coarse(const Candidate& candidate);
  /// Exact graph of a candidate that can_be_exact(): folded if that does not change the time or the
  /// problem is folded_only(), otherwise whole. Valid until the next trim(). Not thread-safe.
  PatternGraph exact(const Candidate& candidate);
  /// Folded graph, otherwise as exact(). The candidate's graph must be foldable, at least if every
  /// slice is made as long as the first.
  PatternGraph folded(const Candidate& candidate);
  /// True if the candidate can be simulated exactly. If the problem is folded_only(), all options
  /// of its scheme must be foldable. An option that Workbench adds for a given plan may not be
  /// foldable.
  bool can_be_exact(const Candidate& candidate) const {
    const Scheme& scheme = choices_.schemes[candidate.scheme];
    return exact_ && scheme.batch.threshold_bytes == 0 && options_fold_[candidate.scheme];
  }

  /// Sets the stop function for making exact patterns: PatternBook::set_stop().
  void set_stop(std::function<bool()> stop) { exact_book_.set_stop(std::move(stop)); }

  /// Frees memory if exact patterns take too much. Invalidates the graphs of exact() and folded().
  void trim();

  /// Times in ps for which a gradient occupies a node's codec stream and port if it is sent alone.
  struct Load {
    double codec = 0, port = 0;
  };
  Load load(std::uint32_t scheme, std::size_t gradient, std::uint16_t option);

  const Choices& choices() const { return choices_; }

 private:
  struct Unit {
    std::uint32_t position;  ///< place of its last member in the order of backward
    std::uint32_t index;     ///< index of a gradient, or number of gradients + index of a group
    std::int64_t elements;
    casync::Decision decision;
    Factors factors = {};  ///< factors that are sent for the unit
  };
  PatternGraph schedule(const Candidate& candidate, Fidelity fidelity);
  void lay_out(const Candidate& candidate);
  void group(const Candidate& candidate);
  /// Properties of a gradient under an algorithm, as the bulk rule sees it.
  struct Sent {
    Factors factors;
    std::int64_t bytes = 0;
  };
  const Sent& sent(std::uint32_t g, std::int8_t algorithm);
  bool folds(const Unit& unit, std::uint32_t scheme) const;
  bool folds_at_least_bounded(const casync::Decision& decision, std::uint32_t scheme) const;
  bool do_options_fold(std::uint32_t scheme) const;
  bool has_coarse(std::uint32_t scheme) const;
  PatternBook& book(Fidelity fidelity) {
    return fidelity == Fidelity::kCoarse ? coarse_book_ : exact_book_;
  }
  const Pattern& pattern(const Unit& unit, std::uint32_t scheme, Fidelity fidelity);
  const Pattern& pattern_of_gradient(std::uint32_t g, std::uint16_t option, std::uint32_t scheme,
                                     Fidelity fidelity);
  PatternKey key(std::int64_t elements, const casync::Decision& decision, const Factors& factors,
                 std::uint32_t scheme, Fidelity fidelity) const;
  const casync::Topology* topology_of(const casync::Decision& decision,
                                      std::uint32_t scheme) const {
    return &pair_[scheme].of(casync::algorithm_at(choices_.algorithms, decision.algorithm));
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
  std::vector<casync::TopologyPair> pair_;  // by scheme
  std::vector<bool> options_fold_;          // by scheme: all options fold, if that is required
  std::vector<Unit> units_;                 // units of the current candidate
  std::vector<std::optional<Sent>> sent_;   // by gradient, then by algorithm, raw first
  const Candidate* candidate_ = nullptr;
  std::vector<std::size_t> first_option_;  // per gradient: its first index in singles_
  /// Patterns of ungrouped gradients, by topology and fidelity; null: not looked up yet.
  std::map<std::pair<const casync::Topology*, Fidelity>, std::vector<const Pattern*>> singles_;
};

/// Iteration time of a plan on network port, in ps, folded with every slice as long as the first.
/// The plan must be foldable in this way and have no batches, and nodes_are_alike() must hold for
/// the cluster. Throws sim::Stopped when Machines::budget is over.
std::int64_t folded_iteration(const models::Model& model, const casync::Plan& plan,
                              const Machines& machines, sim::TransferOrder order);

}  // namespace hipress::planner
