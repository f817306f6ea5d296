#include "planner/bound/visits.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <queue>
#include <utility>

#include "casync/strategy.hpp"
#include "planner/bound/step_tails.hpp"
#include "planner/timing/evaluator.hpp"

namespace hipress::planner {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSafely = 1 - 1e-9;  // more than sums in double precision lose
constexpr double kMaxStepsOfOption = 3e5;
constexpr std::size_t kMaxSteps = 4'000'000;  // of all options together
constexpr std::size_t kMaxPatternBytes = std::size_t{16} << 20;

double total(const std::vector<Visit>& visits) {
  double sum = 0;
  for (const Visit& visit : visits) sum += visit.work;
  return sum;
}

/// One visit that is no more than all of these together.
Visit least_of(const std::vector<Visit>& visits) {
  Visit least = {kInfinity, total(visits), kInfinity};
  for (const Visit& visit : visits) {
    least.head = std::min(least.head, visit.head);
    least.tail = std::min(least.tail, visit.tail);
  }
  return least;
}

}  // namespace

/// At every instant the resource does what has the longest tail of all that is there.
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
                       const std::vector<std::vector<OptionWork>>& work, double grain)
    : ready_(ready),
      nodes_(machines.cluster.nodes),
      grain_(std::max(grain, 1.0)),
      ports_in_order_(machines.network == sim::Network::kPort),
      book_(choices.algorithms, machines) {
  const auto elements = [&](std::size_t place) {
    return model.gradients[ready.order[place]].elements;
  };
  for (std::size_t place = 0; place < ready.order.size(); ++place) {
    const models::Gradient& gradient = model.gradients[ready.order[place]];
    std::int64_t least_bytes = gradient.elements * models::size_of(gradient.dtype);
    for (const casync::Decision& decision : choices.gradients[ready.order[place]]) {
      if (decision.algorithm == casync::kRaw) continue;
      const auto algorithm = static_cast<std::size_t>(decision.algorithm);
      const casync::Algorithm& what = choices.algorithms[algorithm];
      if (!what.is_staged()) continue;
      least_bytes =
          std::min(least_bytes, casync::groupable(gradient, decision.algorithm, &what).bytes);
    }
    if (least_bytes >= scheme.bulk.threshold_bytes && scheme.batch.threshold_bytes == 0) {
      places_.push_back(place);
    }
  }
  std::stable_sort(places_.begin(), places_.end(),
                   [&](std::size_t a, std::size_t b) { return elements(a) > elements(b); });
  const casync::Carriers carriers = casync::carriers(scheme.strategy, scheme.raw_strategy);
  for (const std::size_t place : places_) {
    std::vector<Option>& options = options_.emplace_back();
    for (const OptionWork& least : work[place]) {
      const casync::Decision& decision = choices.gradients[ready.order[place]][least.option];
      const casync::Algorithm* const algorithm =
          casync::algorithm_at(choices.algorithms, decision.algorithm);
      Factors factors;
      if (algorithm != nullptr) {
        factors = factors_of(*algorithm, model.gradients[ready.order[place]]);
      }
      const PatternKey key = {.elements = elements(place),
                              .partitions = decision.partitions,
                              .algorithm = decision.algorithm,
                              .strategy = &carriers.of(algorithm),
                              .fidelity = Fidelity::kWhole,
                              .factors = std::move(factors)};
      options.push_back(read(place, key));
      options.back().end = std::max(options.back().end, least.end);
    }
  }
}

/// An option whose pattern is too large visits nothing that is known.
VisitBound::Option VisitBound::read(std::size_t place, const PatternKey& key) {
  Option option;
  const bool staged = !key.factors.empty();
  const double of_codec = key.partitions * key.strategy->tasks_per_partition(
                                               nodes_, key.algorithm != casync::kRaw && !staged);
  const double expected = staged ? static_cast<double>(key.factors.size()) * of_codec +
                                       nodes_ * (1 + static_cast<double>(key.factors.size()))
                                 : of_codec;
  if (expected > kMaxStepsOfOption || steps_ + static_cast<std::size_t>(expected) > kMaxSteps) {
    return option;
  }
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
    // Who serves a factor's partitions depends on other gradients.
    if (!staged) add_to_nodes(step, visit, ready_.order[place], lists);
  }
  book_.trim(kMaxPatternBytes);
  for (std::vector<Visit>& visits : lists) {
    visits = merged(visits);
    std::vector<Visit> alone = visits;
    option.end = std::max(option.end, preemptive_end(alone));
  }
  option.lists = std::move(lists);
  return option;
}

void VisitBound::add_mean(const Step& step, const Visit& visit, Lists& lists) const {
  const bool codec = step.resource == Resource::kCodec;
  lists[codec].push_back({visit.head, visit.work / nodes_, visit.tail});
}

/// Of the gradient with that index, whose nodes are rotated by it.
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

/// Visits whose heads and tails hardly differ become one with the least of both.
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

/// Leaves out options with which no plan takes less than `known`.
void VisitBound::narrow(double known) {
  for (std::vector<Option>& options : options_) {
    std::erase_if(options, [&](const Option& option) { return option.end >= known; });
  }
}

/// What gradients that are not decided visit whatever their options are.
void VisitBound::find_rest() {
  const std::size_t count = kMeanLists + kListsPerNode * nodes_;
  rest_.assign(places_.size() + 1, Lists(count));
  for (std::size_t depth = places_.size(); depth-- > 0;) {
    rest_[depth] = rest_[depth + 1];
    for (std::size_t list = 0; list < count; ++list) {
      Visit least = {kInfinity, kInfinity, kInfinity};
      for (const Option& option : options_[depth]) {
        const Visit one = option.lists.empty() ? Visit{0, 0, 0} : least_of(option.lists[list]);
        least = {std::min(least.head, one.head), std::min(least.work, one.work),
                 std::min(least.tail, one.tail)};
      }
      if (least.work > 0 && least.work < kInfinity) rest_[depth][list].push_back(least);
    }
  }
}

/// Of the resources, the one that is through last.
double VisitBound::end_of(const Part& part) {
  bool even = true;
  double end = part.least;
  for (std::size_t depth = 0; depth < part.decided.size(); ++depth) {
    const Option& option = options_[depth][part.decided[depth]];
    end = std::max(end, option.end);
    even = even && option.even;
  }
  const std::size_t lists = even ? kMeanLists : rest_.front().size();
  for (std::size_t list = 0; list < lists; ++list) {
    visits_ = rest_[part.decided.size()][list];
    for (std::size_t depth = 0; depth < part.decided.size(); ++depth) {
      const Option& option = options_[depth][part.decided[depth]];
      if (option.lists.empty()) continue;
      visits_.insert(visits_.end(), option.lists[list].begin(), option.lists[list].end());
    }
    looked_at_ += visits_.size() + 1;
    end = std::max(end, preemptive_end(visits_) * kSafely);
  }
  return end;
}

/// Of parts that are bounded alike, the one that is decided farther comes first.
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
  find_rest();
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
