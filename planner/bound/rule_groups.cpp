#include "planner/bound/rule_groups.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace hipress::planner {

RuleGroups::RuleGroups(const casync::Aggregation& rule, std::vector<Candidate> candidates)
    : rule_(rule), candidates_(std::move(candidates)) {
  std::int64_t all_bytes = 0;
  for (const Candidate& candidate : candidates_) all_bytes += candidate.most_bytes;
  limit_binds_ = rule_.limit_bytes && all_bytes > *rule_.limit_bytes;
}

bool RuleGroups::is_in_rule(const casync::Groupable& gradient) const {
  return gradient.bytes < rule_.threshold_bytes;
}

/// Groups that the rule itself forms once all gradients are decided.
std::vector<std::vector<std::size_t>> RuleGroups::of_all(Decided decided) const {
  std::vector<casync::Groupable> gradients;
  for (const auto& gradient : decided) gradients.push_back(*gradient);
  const std::vector<std::uint32_t> last = casync::bulk_groups(rule_, gradients);
  std::vector<std::vector<std::size_t>> groups(gradients.size());
  for (std::size_t place = 0; place < last.size(); ++place) groups[last[place]].push_back(place);
  return groups;
}

/// Adds the sets of one algorithm. A group's first member determines how long the group stays open,
/// so all possible first members of the open group are kept. A decided gradient surely joins the
/// group of the previous one if even the earliest possible first member allows it.
void RuleGroups::add_sure(std::int8_t algorithm, Decided decided,
                          std::vector<std::vector<std::size_t>>& groups) const {
  std::vector<casync::Picoseconds> firsts;
  bool none = true;  // possibly, no group has begun yet
  // Earliest possible start of the group of the last decided gradient.
  std::optional<casync::Picoseconds> earliest;
  for (std::size_t place = 0; place < candidates_.size(); ++place) {
    const auto& gradient = decided[place];
    const bool takes_part = gradient ? gradient->algorithm == algorithm && is_in_rule(*gradient)
                                     : candidates_[place].most_bytes > 0;
    if (!takes_part) continue;
    const casync::Picoseconds ready = candidates_[place].ready;
    const auto lets_in = [&](casync::Picoseconds first) {
      return !rule_.wait || ready - first <= *rule_.wait;
    };
    const bool begins = none || !std::ranges::all_of(firsts, lets_in);
    if (gradient) {
      if (!earliest || limit_binds_ || !lets_in(*earliest)) groups.emplace_back();
      groups.back().push_back(place);
      std::erase_if(firsts, [&](casync::Picoseconds first) { return !lets_in(first); });
      none = false;
    }
    if (begins) firsts.push_back(ready);
    if (gradient) earliest = *std::ranges::min_element(firsts);
  }
}

std::vector<std::vector<std::size_t>> RuleGroups::sure(Decided decided) const {
  if (std::ranges::all_of(decided, [](const auto& one) { return one.has_value(); })) {
    return of_all(decided);
  }
  std::vector<std::vector<std::size_t>> groups;
  std::set<std::int8_t> algorithms;
  for (std::size_t place = 0; place < decided.size(); ++place) {
    if (!decided[place]) continue;
    if (is_in_rule(*decided[place])) {
      algorithms.insert(decided[place]->algorithm);
    } else {
      groups.push_back({place});
    }
  }
  for (const std::int8_t algorithm : algorithms) add_sure(algorithm, decided, groups);
  return groups;
}

}  // namespace hipress::planner
