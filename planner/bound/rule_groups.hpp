#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "casync/layout.hpp"
#include "casync/plan.hpp"

namespace hipress::planner {

/// Groups that a bulk rule is certain to form when only some gradients' options are decided.
class RuleGroups {
 public:
  /// A gradient before its decision.
  struct Candidate {
    casync::Picoseconds ready{};
    std::int64_t most_bytes = 0;  ///< largest size that the rule may see; 0: never in a group
  };

  /// `candidates` are in the order of backward.
  RuleGroups(const casync::Aggregation& rule, std::vector<Candidate> candidates);

  /// Sets of decided gradients that share a group whatever is decided for the others. Gradients are
  /// given by their place in the order of backward, in which each set is sorted, too. `decided` has
  /// one entry per place; unset: undecided.
  std::vector<std::vector<std::size_t>> sure(
      std::span<const std::optional<casync::Groupable>> decided) const;

 private:
  using Decided = std::span<const std::optional<casync::Groupable>>;
  bool is_in_rule(const casync::Groupable& gradient) const;
  std::vector<std::vector<std::size_t>> of_all(Decided decided) const;
  void add_sure(std::int8_t algorithm, Decided decided,
                std::vector<std::vector<std::size_t>>& groups) const;

  const casync::Aggregation rule_;
  const std::vector<Candidate> candidates_;
  bool limit_binds_ = false;  ///< groups can reach the rule's size limit
};

}  // namespace hipress::planner
