#include "planner/bound/visits.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <queue>
#include <utility>

#include "planner/bound/step_tails.hpp"
#include "planner/timing/evaluator.hpp"

namespace hipress::planner {
namespace {

constexpr double kMaxStepsOfOption = 3e5;
constexpr std::size_t kMaxSteps = 4'000'000;  // limit on the steps of all options together
constexpr std::size_t kMaxVisitBytes = std::size_t{16} << 20;

double total(const std::vector<Visit>& visits) {
  double sum = 0;
  for (const Visit& visit : visits) sum += visit.work;
  return sum;
}

/// Cost of a task of this kind on a slice. For a Decode, the lower cost of overwriting and adding.
double cost_of(casync::Kind kind, const casync::SliceCosts& slice) {
  switch (kind) {
    case casync::Kind::kEncode:
      return slice.encode;
    case casync::Kind::kDecode:
      return std::min(slice.decode, slice.add);
    case casync::Kind::kMerge:
      return slice.add;
    case casync::Kind::kSend:
      return slice.port;
    default:
      return 0;
  }
}

/// One visit that, as a lower bound, stands for all of these.
Visit least_of(const std::vector<Visit>& visits) {
  Visit least = {kInfinity, total(visits), kInfinity};
  for (const Visit& visit : visits) {
    least.head = std::min(least.head, visit.head);
    least.tail = std::min(least.tail, visit.tail);
  }
  return least;
}

}  // namespace

/// Visits wait from their heads on; the resource always serves the one with the longest tail.
double preemptive_end(std::vector<Visit>& visits) {
  std::sort(visits.begin(), visits.end(),
            [](const Visit& a, const Visit& b) { return a.head < b.head; });
  std::priority_queue<std::pair<double, std::size_t>> waiting;
  double now = 0, end = 0;
  for (std::size_t next = 0; next < visits.size() || !waiting.empty();) {
    if (waiting.empty()) now = std::max(now, visits[next].head);
    for (; next < visits.size() && visits[next].head <= now; ++next) {
      waiting.push({visits[next].tail, next});
    }
    Visit& first = visits[waiting.top().second];
    const double until =
        next < visits.size() ? std::min(visits[next].head, now + first.work) : now + first.work;
    if (now + first.work <= until) {
      now = until;
      end = std::max(end, now + first.tail);
      waiting.pop();
    } else {
      first.work -= until - now;
      now = until;
    }
  }
  return end;
}

bool VisitBound::holds_for(const Machines& machines) {
  const bool bursts =
      machines.network != sim::Network::kPort && machines.cluster.link.burst_bytes > 0;
  return machines.cluster.nodes > 1 && nodes_are_alike(machines.cluster) && !bursts;
}

VisitBound::VisitBound(const models::Model& model, const Machines& machines, const Choices& choices,
                       const Scheme& scheme, const ReadyTimes& ready,
                       const std::vector<std::vector<OptionWork>>& work, double grain,
                       Groups groups)
    : ready_(ready),
      model_(model),
      pair_(casync::topologies_of(scheme.topology, scheme.raw_topology)),
      forms_(forms_of(machines, choices.algorithms, ready)),
      message_(LeastMessage(machines).line()),
      nodes_(machines.cluster.nodes),
      grain_(std::max(grain, 1.0)),
      ports_in_order_(machines.network == sim::Network::kPort),
      batched_bytes_(scheme.batch.threshold_bytes),
      rule_(groups == Groups::kByRule ? std::optional(scheme.bulk) : std::nullopt),
      book_(choices.algorithms, machines) {
  const auto elements = [&](std::size_t place) {
    return model.gradients[ready.order[place]].elements;
  };
  places_.resize(ready.order.size());
  std::iota(places_.begin(), places_.end(), std::size_t{0});
  std::stable_sort(places_.begin(), places_.end(),
                   [&](std::size_t a, std::size_t b) { return elements(a) > elements(b); });
  for (const std::size_t place : places_) {
    std::vector<Option>& options = options_.emplace_back();
    const std::size_t alone = choices.gradients[ready.order[place]].size();
    for (std::size_t i = 0; i < work[place].size(); ++i) {
      const OptionWork& least = work[place][i];
      const casync::Decision& decision = choices.gradients[ready.order[place]][least.option];
      const casync::Algorithm* const algorithm =
          casync::algorithm_at(choices.algorithms, decision.algorithm);
      PatternKey key = {.elements = elements(place),
                        .partitions = decision.partitions,
                        .algorithm = decision.algorithm,
                        .topology = &pair_.of(algorithm),
                        .fidelity = Fidelity::kWhole};
      if (i < alone) key.factors = factors_of(algorithm, model.gradients[ready.order[place]]);
      if (i >= alone) key.partitions = static_cast<std::int32_t>(nodes_);
      const bool in_group = i >= alone && least.in_group;
      const bool told_apart = in_group || (i < alone && !joins_batches(key));
      Option option = !told_apart || !is_affordable(key) ? of_least(place, least)
                      : in_group                         ? read_group(place, key, *least.in_group)
                                                         : read(place, key);
      option.end = std::max(option.end, least.end);
      option.in_group = i >= alone;
      option.rule =
          casync::groupable(model.gradients[ready.order[place]], decision.algorithm, algorithm);
      options.push_back(std::move(option));
    }
  }
}

/// True if slices may be launched in batches, in which they cost less than alone. All slices but
/// the last may be a word longer than an equal part, so the last may be K words shorter.
bool VisitBound::joins_batches(const PatternKey& key) const {
  if (batched_bytes_ == 0) return false;
  const std::int64_t slice = key.elements / key.partitions - casync::kSliceWord * key.partitions;
  return !key.factors.empty() || slice * static_cast<std::int64_t>(sizeof(float)) < batched_bytes_;
}

/// Option with a single visit per resource: the work in the lines of the linear program.
VisitBound::Option VisitBound::of_least(std::size_t place, const OptionWork& least) const {
  Option option;
  option.lists.resize(kMeanLists + kListsPerNode * nodes_);
  const double ready = ready_.last(place);
  if (least.port.average > 0) {
    option.lists[0] = {{ready + least.port_head, least.port.average, least.port_tail}};
  }
  if (least.codec.average > 0) {
    option.lists[1] = {{ready + least.codec_head, least.codec.average, least.codec_tail}};
  }
  return option;
}

bool VisitBound::is_affordable(const PatternKey& key) const {
  const bool encoded = key.algorithm != casync::kRaw && key.factors.empty();
  const double carried = key.partitions * key.topology->tasks_per_partition(nodes_, encoded);
  const auto factors = static_cast<double>(key.factors.size());
  const double expected = factors == 0 ? carried : factors * carried + nodes_ * (1 + factors);
  return expected <= kMaxStepsOfOption && steps_ + static_cast<std::size_t>(expected) <= kMaxSteps;
}

VisitBound::Option VisitBound::read(std::size_t place, const PatternKey& key) {
  Option option;
  const Pattern& pattern = book_.find(key);
  steps_ += pattern.count();
  const std::vector<std::int64_t> heads = step_heads(pattern, ports_in_order_);
  const StepTails tails = step_tails(pattern);
  const double release = ready_.last(place);
  Lists lists(kMeanLists + kListsPerNode * nodes_);
  option.even = pattern.is_collective() || key.partitions % nodes_ == 0;
  for (std::uint32_t i = 0; i < pattern.count(); ++i) {
    const Step& step = pattern.steps[i];
    const double head = release + static_cast<double>(heads[i]);
    option.end = std::max(option.end, head + static_cast<double>(tails[i]));
    if (step.work == 0 || step.resource == Resource::kLocal) continue;
    const auto work = static_cast<double>(step.work);
    const Visit visit = {head, work, static_cast<double>(tails[i]) - work};
    add_mean(step, visit, lists);
    if (pattern.has_own_servers()) add_to_nodes(step, visit, ready_.order[place], lists);
  }
  book_.trim(kMaxVisitBytes);
  finish(std::move(lists), option);
  return option;
}

/// Visits of a group's tasks; `work_of` gives the work of a step, or a part of it. All nodes get
/// the same visits, since the group's index, which is not known, decides which node comes first.
template <class WorkOf>
VisitBound::Option VisitBound::read_steps(const Pattern& pattern, double release,
                                          const WorkOf& work_of) const {
  Option option;
  const std::vector<std::int64_t> heads = step_heads(pattern, ports_in_order_, batched_bytes_ == 0);
  const StepTails tails = step_tails(pattern);
  Lists lists(kMeanLists + kListsPerNode * nodes_);
  for (std::uint32_t i = 0; i < pattern.count(); ++i) {
    const Step& step = pattern.steps[i];
    const double head = release + static_cast<double>(heads[i]);
    option.end = std::max(option.end, head + static_cast<double>(tails[i]));
    if (step.work == 0 || step.resource == Resource::kLocal) continue;
    add_mean(step, {head, work_of(step), static_cast<double>(tails[i] - step.work)}, lists);
  }
  const Visit port = least_of(lists[0]), codec = least_of(lists[1]);
  for (std::uint32_t node = 0; node < nodes_; ++node) {
    std::vector<Visit>* const of_node = &lists[kMeanLists + kListsPerNode * node];
    if (port.work > 0) of_node[0] = of_node[1] = {port};
    if (codec.work > 0) of_node[2] = {codec};
  }
  finish(std::move(lists), option);
  return option;
}

/// Visits of one member of a group. Heads and tails are those of the gradient alone, since the
/// group takes at least as long. The work is the member's share of the group's. With a known rule
/// only the part proportional to its size counts, since whole_group() has the rest.
VisitBound::Option VisitBound::read_group(std::size_t place, const PatternKey& key,
                                          const OptionWork::InGroup& group) {
  Option option;
  Pattern pattern = book_.find(key);
  book_.trim(kMaxVisitBytes);
  steps_ += pattern.count();
  for (std::uint32_t i = 0; i < pattern.count(); ++i) {
    Step& step = pattern.steps[i];
    if (step.resource == Resource::kLocal) continue;
    const bool shared = batched_bytes_ > 0 && step.resource == Resource::kCodec;
    const double least = cost_of(step.kind, shared ? group.slope : group.slice);
    step.work = std::min(step.work, static_cast<std::int64_t>(least));
  }
  const casync::SliceCosts& share = rule_ ? group.slope : group.share;
  return read_steps(pattern, ready_.last(place),
                    [&](const Step& step) { return cost_of(step.kind, share); });
}

/// Lower bound of the visits of a group with at least `elements` elements; null if unknown.
const VisitBound::Option* VisitBound::whole_group(std::int8_t algorithm, std::int64_t elements) {
  const auto [found, added] = whole_groups_.try_emplace({algorithm, elements});
  std::optional<Option>& known = found->second;
  if (!added) return known ? &*known : nullptr;
  const Form& form = forms_[static_cast<std::size_t>(algorithm + 1)];
  // Rounds down to whole slice words: the padding depends on members that are not decided yet.
  const std::int64_t without_padding = elements - elements % (casync::kSliceWord * nodes_);
  if (without_padding == 0) return nullptr;
  const PatternKey key = {.elements = without_padding,
                          .partitions = static_cast<std::int32_t>(nodes_),
                          .algorithm = algorithm,
                          .topology = &pair_.of(form.algorithm),
                          .fidelity = Fidelity::kWhole};
  const bool whole = key.topology->form == casync::Topology::Form::kWhole;
  if (whole || is_additive(form.algorithm) || joins_batches(key) || !is_affordable(key))
    return nullptr;
  Pattern pattern = book_.find(key);
  book_.trim(kMaxVisitBytes);
  steps_ += pattern.count();
  looked_at_ += pattern.count();
  const std::int64_t slice = key.elements / nodes_;
  const casync::SliceCosts least = {
      .encode = form.encode.of_part(slice),
      .decode = form.decode.of_part(slice),
      .add = form.add.of_part(slice),
      .port = message_.a + message_.b * form.bytes_per_element * static_cast<double>(slice)};
  for (std::uint32_t i = 0; i < pattern.count(); ++i) {
    Step& step = pattern.steps[i];
    if (step.resource == Resource::kLocal) continue;
    step.work = std::min(step.work, static_cast<std::int64_t>(cost_of(step.kind, least)));
  }
  known = read_steps(pattern, 0, [](const Step& step) { return static_cast<double>(step.work); });
  return &*known;
}

void VisitBound::finish(Lists lists, Option& option) const {
  for (std::vector<Visit>& visits : lists) {
    visits = merged(visits);
    std::vector<Visit> alone = visits;
    option.end = std::max(option.end, preemptive_end(alone));
  }
  option.lists = std::move(lists);
}

void VisitBound::add_mean(const Step& step, const Visit& visit, Lists& lists) const {
  const bool codec = step.resource == Resource::kCodec;
  lists[codec].push_back({visit.head, visit.work / nodes_, visit.tail});
}

/// Adds the visit to the lists of its nodes, rotated by the index g of the gradient.
void VisitBound::add_to_nodes(const Step& step, const Visit& visit, std::uint32_t g,
                              Lists& lists) const {
  const bool codec = step.resource == Resource::kCodec;
  const std::uint32_t node = (step.node + g) % nodes_;
  const auto list = [&](std::uint32_t on, std::size_t sort) -> std::vector<Visit>& {
    return lists[kMeanLists + kListsPerNode * on + sort];
  };
  if (codec) return list(node, 2).push_back(visit);
  list(node, 0).push_back(visit);
  list((step.node + g + step.shift) % nodes_, 1).push_back(visit);
}

/// Merges visits with nearly equal heads and tails. The result has the smallest head, the smallest
/// tail, and the sum of the work.
std::vector<Visit> VisitBound::merged(const std::vector<Visit>& visits) const {
  std::map<std::pair<double, double>, Visit> cells;
  for (const Visit& visit : visits) {
    const auto [at, added] = cells.try_emplace(
        {std::floor(visit.head / grain_), std::floor(visit.tail / grain_)}, visit);
    if (added) continue;
    Visit& cell = at->second;
    cell = {std::min(cell.head, visit.head), cell.work + visit.work,
            std::min(cell.tail, visit.tail)};
  }
  std::vector<Visit> result;
  for (const auto& [key, visit] : cells) result.push_back(visit);
  return result;
}

/// Removes options with which no plan takes less than `known`.
void VisitBound::narrow(double known) {
  for (std::vector<Option>& options : options_) {
    std::erase_if(options, [&](const Option& option) { return option.end >= known; });
  }
}

/// One visit that is a lower bound for the visits of each of these options.
Visit VisitBound::least_of_options(std::span<const Option> options, std::size_t list) {
  Visit least = {kInfinity, kInfinity, kInfinity};
  for (const Option& option : options) {
    const Visit one = option.lists.empty() ? Visit{0, 0, 0} : least_of(option.lists[list]);
    least = {std::min(least.head, one.head), std::min(least.work, one.work),
             std::min(least.tail, one.tail)};
  }
  return least;
}

/// Merges the options of each small gradient by algorithm, those in groups apart from those alone.
/// Keeping all of them would take as long as for a large gradient, and hardly improve the bound.
void VisitBound::join_small() {
  constexpr double kLittle = 0.01;
  const auto work_of = [&](std::size_t depth) {
    return least_of_options(options_[depth], 0).work + least_of_options(options_[depth], 1).work;
  };
  double all = 0;
  for (std::size_t depth = 0; depth < options_.size(); ++depth) all += work_of(depth);
  for (std::size_t depth = 0; depth < options_.size(); ++depth) {
    if (work_of(depth) > kLittle * all) continue;
    std::map<std::pair<std::int8_t, bool>, std::vector<Option>> alike;
    for (Option& option : options_[depth]) {
      alike[{option.rule.algorithm, option.in_group}].push_back(std::move(option));
    }
    options_[depth].clear();
    for (const auto& [how, options] : alike) {
      Option joined = options.front();
      joined.lists.assign(kMeanLists + kListsPerNode * nodes_, {});
      for (std::size_t list = 0; list < joined.lists.size(); ++list) {
        const Visit least = least_of_options(options, list);
        if (least.work > 0 && least.work < kInfinity) joined.lists[list] = {least};
      }
      for (const Option& option : options) {
        joined.end = std::min(joined.end, option.end);
        joined.even = joined.even && option.even;
      }
      options_[depth].push_back(std::move(joined));
    }
  }
}

/// Computes the least visits of undecided gradients, which occur under each of their options.
void VisitBound::find_rest() {
  const std::size_t count = kMeanLists + kListsPerNode * nodes_;
  rest_.assign(places_.size() + 1, Lists(count));
  for (std::size_t depth = places_.size(); depth-- > 0;) {
    rest_[depth] = rest_[depth + 1];
    for (std::size_t list = 0; list < count; ++list) {
      const Visit least = least_of_options(options_[depth], list);
      if (least.work > 0 && least.work < kInfinity) rest_[depth][list].push_back(least);
    }
  }
}

/// Prepares the rule's groups, if the rule is known.
void VisitBound::ask_rule() {
  if (!rule_) return;
  std::vector<RuleGroups::Candidate> candidates(places_.size());
  for (std::size_t depth = 0; depth < places_.size(); ++depth) {
    RuleGroups::Candidate& candidate = candidates[places_[depth]];
    for (const Option& option : options_[depth]) {
      candidate.ready = option.rule.ready;
      if (option.rule.bytes >= rule_->threshold_bytes) continue;
      candidate.most_bytes = std::max(candidate.most_bytes, option.rule.bytes);
    }
  }
  rule_groups_.emplace(*rule_, std::move(candidates));
}

/// Finds the groups that are certain by a known rule; false if decisions contradict the rule.
bool VisitBound::find_groups(const Part& part) {
  groups_.clear();
  if (!rule_) return true;
  std::vector<std::optional<casync::Groupable>> decided(places_.size());
  std::vector<std::size_t> depth_of(places_.size());
  for (std::size_t depth = 0; depth < part.decided.size(); ++depth) {
    depth_of[places_[depth]] = depth;
    decided[places_[depth]] = options_[depth][part.decided[depth]].rule;
  }
  const bool all_decided = part.decided.size() == places_.size();
  for (const std::vector<std::size_t>& members : rule_groups_->sure(decided)) {
    Group group;
    for (const std::size_t place : members) {
      const std::size_t depth = depth_of[place];
      const bool in_group = options_[depth][part.decided[depth]].in_group;
      // Other gradients may still join a group with a single member so far.
      if (members.size() > 1 ? !in_group : in_group && all_decided) return false;
      group.depths.push_back(depth);
      group.elements += model_.gradients[ready_.order[place]].elements;
    }
    if (members.size() < 2) continue;
    group.algorithm = decided[members.front()]->algorithm;
    group.release = ready_.last(members.back());
    group.whole = whole_group(group.algorithm, group.elements);
    groups_.push_back(std::move(group));
  }
  return true;
}

/// Collects the visits of the decided options, and the least visits of the other gradients.
void VisitBound::gather_visits(const Part& part, std::size_t list) {
  visits_ = rest_[part.decided.size()][list];
  const auto add = [&](const Option& option, double later) {
    if (option.lists.empty()) return;
    for (const Visit& visit : option.lists[list]) {
      visits_.push_back({visit.head + later, visit.work, visit.tail});
    }
  };
  later_.assign(part.decided.size(), 0);
  for (const Group& group : groups_) {
    if (group.whole != nullptr) add(*group.whole, group.release);
    for (const std::size_t depth : group.depths) {
      later_[depth] =
          group.whole != nullptr ? kInfinity : group.release - ready_.last(places_[depth]);
    }
  }
  for (std::size_t depth = 0; depth < part.decided.size(); ++depth) {
    if (later_[depth] < kInfinity) add(options_[depth][part.decided[depth]], later_[depth]);
  }
}

/// Lower bound of a partial decision: the end on the resource that ends last.
double VisitBound::end_of(const Part& part) {
  if (!find_groups(part)) return kInfinity;
  bool even = true;
  double end = part.least;
  for (std::size_t depth = 0; depth < part.decided.size(); ++depth) {
    const Option& option = options_[depth][part.decided[depth]];
    end = std::max(end, option.end);
    even = even && option.even;
  }
  for (const Group& group : groups_) {
    if (group.whole != nullptr) end = std::max(end, (group.release + group.whole->end) * kSlack);
  }
  const std::size_t lists = even ? kMeanLists : rest_.front().size();
  for (std::size_t list = 0; list < lists; ++list) {
    gather_visits(part, list);
    looked_at_ += visits_.size() + 1;
    end = std::max(end, preemptive_end(visits_) * kSlack);
  }
  return end;
}

/// True if `a` comes after `b`: the part with the lowest bound comes first; of equals, the one with
/// most decisions.
bool VisitBound::is_later(const Part& a, const Part& b) {
  if (a.least != b.least) return a.least > b.least;
  return a.decided.size() < b.decided.size();
}

double VisitBound::least(double known, std::size_t most_visits) {
  if (places_.empty() || most_visits == 0) return 0;
  narrow(known);
  for (const std::vector<Option>& options : options_) {
    if (options.empty()) return known;
  }
  join_small();
  find_rest();
  ask_rule();
  std::priority_queue<Part, std::vector<Part>, decltype(&is_later)> parts(&is_later);
  Part all;
  all.least = end_of(all);
  parts.push(all);
  while (!parts.empty() && looked_at_ < most_visits) {
    const Part part = parts.top();
    if (part.decided.size() == places_.size()) break;
    parts.pop();
    const std::size_t count = options_[part.decided.size()].size();
    for (std::uint16_t option = 0; option < count; ++option) {
      Part child = part;
      child.decided.push_back(option);
      child.least = end_of(child);
      if (child.least < known) parts.push(std::move(child));
    }
  }
  return parts.empty() ? known : parts.top().least;
}

}  // namespace hipress::planner
