#include "planner/bound/rule_groups.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace hipress::planner {
namespace {

using casync::Groupable;
using casync::Picoseconds;
using Pair = std::pair<std::size_t, std::size_t>;
using Decided = std::vector<std::optional<Groupable>>;

/// Gradients of 10 bytes in the order of backward. Some are ready at the same time.
struct Instance {
  casync::Aggregation rule = {.threshold_bytes = 20};
  std::vector<RuleGroups::Candidate> candidates;
  Decided decided;

  explicit Instance(std::mt19937& draws) {
    const auto below = [&](unsigned bound) { return draws() % bound; };
    if (below(4) > 0) rule.wait = Picoseconds(below(25));
    if (below(4) == 0) rule.limit_bytes = 10 * (1 + below(7));
    std::int64_t ready = 0;
    for (int i = 0; i < 6; ++i) {
      ready += below(10);
      candidates.push_back({.ready = Picoseconds(ready), .most_bytes = 10});
      decided.push_back(below(2) == 0 ? std::nullopt : std::optional(way(below(3), i)));
    }
  }

  /// Gives the gradient one of two algorithms, or makes it too large for a group.
  Groupable way(unsigned which, std::size_t place) const {
    return {.ready = candidates[place].ready,
            .bytes = which == 2 ? 30 : 10,
            .algorithm = static_cast<std::int8_t>(which % 2)};
  }
};

std::set<Pair> pairs_of(const std::vector<std::vector<std::size_t>>& groups) {
  std::set<Pair> pairs;
  for (const std::vector<std::size_t>& group : groups) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      for (std::size_t j = i + 1; j < group.size(); ++j) pairs.emplace(group[i], group[j]);
    }
  }
  return pairs;
}

/// Keeps in `common` the pairs of gradients that share a group, whatever is decided from `place`
/// on.
void keep_common(const Instance& instance, Decided decided, std::size_t place,
                 std::optional<std::set<Pair>>& common) {
  if (place == decided.size()) {
    const std::set<Pair> pairs =
        pairs_of(RuleGroups(instance.rule, instance.candidates).sure(decided));
    if (!common) {
      common = pairs;
    } else {
      std::erase_if(*common, [&](const Pair& pair) { return !pairs.contains(pair); });
    }
    return;
  }
  if (decided[place]) return keep_common(instance, std::move(decided), place + 1, common);
  for (const unsigned which : {0u, 1u, 2u}) {
    decided[place] = instance.way(which, place);
    keep_common(instance, decided, place + 1, common);
  }
}

TEST_CASE("gradients are in one group for sure where every way to go on says so") {
  std::mt19937 draws(1);
  int together = 0;
  for (int round = 0; round < 2000; ++round) {
    const Instance instance(draws);
    CAPTURE(round);
    std::optional<std::set<Pair>> common;
    keep_common(instance, instance.decided, 0, common);
    std::erase_if(*common, [&](const Pair& pair) {
      return !instance.decided[pair.first] || !instance.decided[pair.second];
    });
    const std::set<Pair> sure =
        pairs_of(RuleGroups(instance.rule, instance.candidates).sure(instance.decided));
    for (const Pair& pair : sure) CHECK(common->contains(pair));
    // If groups can reach the size limit, not all sure pairs are found.
    if (!instance.rule.limit_bytes || *instance.rule.limit_bytes >= 60) CHECK(sure == *common);
    together += static_cast<int>(sure.size());
  }
  CHECK(together > 500);
}

}  // namespace
}  // namespace hipress::planner
