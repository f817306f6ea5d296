#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "casync/layout.hpp"
#include "casync/plan.hpp"

namespace hipress::planner {

/// Which gradients one bulk rule puts into one group, where only some are decided.
class RuleGroups {
 public:
  /// A gradient before it is decided.
  struct Candidate {
    casync::Picoseconds ready{};
    std::int64_t most_bytes = 0;  ///< that count for the rule; 0: it cannot be in a group
  };

  /// Of gradients in the order of backward.
  RuleGroups(const casync::Aggregation& rule, std::vector<Candidate> candidates);

  /// Places of the decided gradients, those together that are in one group whatever is decided of
  /// the others; each list in the order of backward. `decided`: by place; none: not decided.
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
  bool limit_binds_ = false;  ///< groups can become too large
};

}  // namespace hipress::planner
