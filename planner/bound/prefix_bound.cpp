#include "planner/bound/prefix_bound.hpp"

#include <algorithm>

namespace hipress::planner {
namespace {

constexpr std::size_t kMaxPoints = 512;  // of a frontier; more: closer, and slower to make

}  // namespace

PrefixBound::PrefixBound(Evaluator& evaluator, std::uint32_t scheme, const ReadyTimes& ready,
                         const std::vector<std::vector<OptionWork>>& work)
    : evaluator_(evaluator), ready_(ready), scheme_(scheme), options_(ready.order.size()) {
  std::size_t most = 1;
  for (const auto& options : evaluator.choices().gradients) most = std::max(most, options.size());
  for (std::size_t option = 0; option < most; ++option) read(option, work);
  chosen_.resize(any_.representatives + 1);
  egress_free_.resize(any_.representatives);
  codec_free_.resize(any_.representatives);
}

/// The options with this number of all gradients that have so many.
void PrefixBound::read(std::size_t option, const std::vector<std::vector<OptionWork>>& work) {
  const auto& gradients = evaluator_.choices().gradients;
  Candidate candidate = {scheme_, {}};
  for (const auto& options : gradients) {
    candidate.options.push_back(static_cast<std::uint16_t>(std::min(option, options.size() - 1)));
  }
  any_ = evaluator_.whole(candidate);
  for (std::size_t place = 0; place < any_.units.size(); ++place) {
    if (option >= gradients[ready_.order[place]].size()) continue;
    PrefixOption& one = options_[place].emplace_back(read(any_.units[place]));
    one.option = static_cast<std::uint16_t>(option);
    for (const OptionWork& least : work[place]) {
      if (least.option != option) continue;
      const std::int64_t alone =
          least_alone(*one.pattern, *one.tails, any_.representatives) + any_.units[place].ready;
      one.end = std::max(least.end, static_cast<double>(alone));
      one.port_tail = static_cast<std::int64_t>(least.port_tail);
      one.codec_tail = static_cast<std::int64_t>(least.codec_tail);
    }
  }
}

PrefixOption PrefixBound::read(const PlacedUnit& unit) {
  PrefixOption one = {.pattern = unit.pattern,
                      .tails = tails_of(*unit.pattern),
                      .loads = std::vector<NodeLoad>(any_.representatives + 1),
                      .egress_tails = std::vector<std::int64_t>(any_.representatives, 0),
                      .codec_tails = std::vector<std::int64_t>(any_.representatives, 0)};
  NodeLoad& all = one.loads.back();
  for (std::uint32_t i = 0; i < unit.pattern->count(); ++i) {
    const Step& step = unit.pattern->steps[i];
    const std::uint32_t node = any_.node_of(unit, step);
    if (step.resource == Resource::kCodec) {
      one.loads[node].codec += step.work;
      all.codec += step.work;
    } else if (step.resource == Resource::kPorts) {
      one.loads[node].egress += step.work;
      one.loads[any_.receiver_of(unit, step)].ingress += step.work;
      all.egress += step.work;
      all.ingress += step.work;
    }
  }
  read_tails(unit, one);
  if (!unit.pattern->has_own_servers()) count_least_of_nodes(one);
  return one;
}

/// Who serves a factor's partitions depends on the gradients before it, so every node counts with
/// the least of all.
void PrefixBound::count_least_of_nodes(PrefixOption& one) {
  const auto lower_to_least = [](std::vector<std::int64_t>& numbers) {
    numbers.assign(numbers.size(), *std::min_element(numbers.begin(), numbers.end()));
  };
  lower_to_least(one.egress_tails);
  lower_to_least(one.codec_tails);
  NodeLoad least = one.loads.front();
  for (std::size_t node = 0; node + 1 < one.loads.size(); ++node) {
    least.egress = std::min(least.egress, one.loads[node].egress);
    least.ingress = std::min(least.ingress, one.loads[node].ingress);
    least.codec = std::min(least.codec, one.loads[node].codec);
  }
  std::fill(one.loads.begin(), one.loads.end() - 1, least);
}

/// Steps that wait for none are served in their order, and before those that they lead to.
void PrefixBound::read_tails(const PlacedUnit& unit, PrefixOption& one) const {
  const Pattern& pattern = *unit.pattern;
  const StepTails& tails = *one.tails;
  const auto tail = [&](const Step& step) -> std::int64_t* {
    const std::uint32_t node = any_.node_of(unit, step);
    if (step.resource == Resource::kCodec) return &one.codec_tails[node];
    return step.resource == Resource::kPorts ? &one.egress_tails[node] : nullptr;
  };
  const bool ordered = begins_in_order(pattern);
  std::vector<NodeLoad> begun(any_.representatives);
  const auto done = [&](const Step& step) -> std::int64_t& {
    NodeLoad& load = begun[any_.node_of(unit, step)];
    return step.resource == Resource::kCodec ? load.codec : load.egress;
  };
  if (ordered) {
    for (const std::uint32_t source : pattern.sources) {
      const Step& step = pattern.steps[source];
      if (!tail(step)) continue;
      *tail(step) = std::max(*tail(step), done(step) + tails[source]);
      done(step) += step.work;
    }
  }
  for (std::uint32_t i = 0; i < pattern.count(); ++i) {
    const Step& step = pattern.steps[i];
    if (!tail(step) || (ordered && pattern.waits[i] == 0)) continue;
    *tail(step) = std::max(*tail(step), done(step) + tails[i]);
  }
}

std::shared_ptr<const StepTails> PrefixBound::tails_of(const Pattern& pattern) {
  std::shared_ptr<const StepTails>& known = tails_[&pattern];
  if (!known) known = std::make_shared<const StepTails>(step_tails(pattern));
  return known;
}

bool PrefixBound::prepare(std::int64_t time) {
  least_port_tail_ = least_codec_tail_ = kNever;
  for (std::vector<PrefixOption>& options : options_) {
    std::erase_if(options, [&](const PrefixOption& option) {
      return option.end >= static_cast<double>(time);
    });
    if (options.empty()) return false;
    for (const PrefixOption& option : options) {
      least_port_tail_ = std::min(least_port_tail_, option.port_tail);
      least_codec_tail_ = std::min(least_codec_tail_, option.codec_tail);
    }
  }
  const std::size_t scopes = any_.representatives + 1;
  frontiers_.assign(options_.size() + 1, std::vector<std::vector<Point>>(scopes, {Point{}}));
  for (std::size_t place = options_.size(); place-- > 0;) {
    for (std::size_t scope = 0; scope < scopes; ++scope) {
      frontiers_[place][scope] = frontier(place, scope);
    }
  }
  return true;
}

/// From the frontier of the next place.
std::vector<PrefixBound::Point> PrefixBound::frontier(std::size_t place, std::size_t scope) const {
  std::vector<Point> points;
  for (const PrefixOption& option : options_[place]) {
    const NodeLoad& load = option.loads[scope];
    for (const Point& behind : frontiers_[place + 1][scope]) {
      points.push_back(
          {behind.port + std::min(load.egress, load.ingress), behind.codec + load.codec});
    }
  }
  keep_least(points);
  // Neighbours are joined to one that is no more than either, until there are few enough.
  while (points.size() > kMaxPoints) {
    for (std::size_t i = 0; i < points.size(); i += 2) {
      const std::size_t next = std::min(i + 1, points.size() - 1);
      points[i / 2] = {points[i].port, points[next].codec};
    }
    points.resize((points.size() + 1) / 2);
  }
  return points;
}

void PrefixBound::keep_least(std::vector<Point>& points) {
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return a.port != b.port ? a.port < b.port : a.codec < b.codec;
  });
  std::size_t kept = 0;
  for (const Point& point : points) {
    if (kept == 0 || point.codec < points[kept - 1].codec) points[kept++] = point;
  }
  points.resize(kept);
}

void PrefixBound::push(const PrefixOption& option) {
  prefix_.push_back(&option);
  for (std::size_t scope = 0; scope < chosen_.size(); ++scope) {
    chosen_[scope].egress += option.loads[scope].egress;
    chosen_[scope].ingress += option.loads[scope].ingress;
    chosen_[scope].codec += option.loads[scope].codec;
  }
}

void PrefixBound::pop() {
  const PrefixOption& option = *prefix_.back();
  prefix_.pop_back();
  for (std::size_t scope = 0; scope < chosen_.size(); ++scope) {
    chosen_[scope].egress -= option.loads[scope].egress;
    chosen_[scope].ingress -= option.loads[scope].ingress;
    chosen_[scope].codec -= option.loads[scope].codec;
  }
}

std::int64_t PrefixBound::at_least(const TimelineState& state) {
  const std::int64_t now = now_of(state);
  return std::max(by_work(state, now), by_paths(state, now));
}

/// When what the state does not hold can begin.
std::int64_t PrefixBound::now_of(const TimelineState& state) const {
  return state.next < any_.units.size() ? any_.units[state.next].ready : state.now;
}

/// Of one node: when its ports and its codec stream are through with the prefix, and what follows.
PrefixBound::Point PrefixBound::base_of(const TimelineState& state, std::int64_t now,
                                        std::uint32_t node) const {
  const auto end = [&](std::uint32_t sort, std::int64_t chosen) {
    const TimelineState::Queue& queue = state.queues[sort * any_.representatives + node];
    return std::max(now, queue.until) + chosen - queue.started;
  };
  return {std::max(end(kEgress, chosen_[node].egress), end(kIngress, chosen_[node].ingress)) +
              least_port_tail_,
          end(kCodecQueue, chosen_[node].codec) + least_codec_tail_};
}

/// What ports and codec streams still have to do, with the choice of the other options that is
/// best for both.
std::int64_t PrefixBound::by_work(const TimelineState& state, std::int64_t now) const {
  const std::uint32_t nodes = any_.representatives;
  const auto& frontiers = frontiers_[prefix_.size()];
  std::int64_t most = 0;
  Point all;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const Point base = base_of(state, now, node);
    most = std::max(most, least(base, frontiers[node]));
    all.port += base.port;
    all.codec += base.codec;
  }
  return std::max(most, least(all, frontiers.back()) / nodes);
}

/// Choices that leave too much to do on one resource do not count on the other.
const std::vector<std::int64_t>& PrefixBound::loads(const TimelineState& state,
                                                    std::int64_t limit) {
  const std::uint32_t nodes = any_.representatives;
  const std::int64_t now = now_of(state);
  loads_.assign(std::size_t{kQueueSorts} * nodes, 0);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const Point base = base_of(state, now, node);
    const std::vector<Point>& frontier = frontiers_[prefix_.size()][node];
    const auto first =
        std::partition_point(frontier.begin(), frontier.end(),
                             [&](const Point& point) { return base.codec + point.codec > limit; });
    const auto last = std::partition_point(
        first, frontier.end(), [&](const Point& point) { return base.port + point.port <= limit; });
    const Point& least_port = first == frontier.end() ? frontier.front() : *first;
    const Point& least_codec = last == first ? frontier.back() : *std::prev(last);
    const std::int64_t port = least_port.port + least_port_tail_;
    loads_[kEgress * nodes + node] = chosen_[node].egress + port;
    loads_[kIngress * nodes + node] = chosen_[node].ingress + port;
    loads_[kCodecQueue * nodes + node] =
        chosen_[node].codec + least_codec.codec + least_codec_tail_;
  }
  return loads_;
}

/// The least that the later of both resources needs.
std::int64_t PrefixBound::least(const Point& base, const std::vector<Point>& frontier) {
  const auto crossing = std::partition_point(
      frontier.begin(), frontier.end(),
      [&](const Point& point) { return base.port + point.port < base.codec + point.codec; });
  std::int64_t time = kNever;
  if (crossing != frontier.end()) time = base.port + crossing->port;
  if (crossing != frontier.begin()) time = std::min(time, base.codec + std::prev(crossing)->codec);
  return time;
}

/// What waits in the queue starts in its order, one after the other from `free` on, and has a tail
/// each. `free` becomes the time from which later steps can start.
std::int64_t PrefixBound::by_queue(const TimelineState::Queue& queue, std::int64_t& free) const {
  std::int64_t most = 0;
  for (std::size_t i = queue.next; i < queue.entries.size(); ++i) {
    const TimelineState::Entry& entry = queue.entries[i];
    const PrefixOption& option = *prefix_[entry.unit];
    most = std::max(most, free + (*option.tails)[entry.step]);
    free += option.pattern->steps[entry.step].work;
  }
  return most;
}

/// Queues are served first come, first served (ports: with transfer order ready), so what is yet
/// to come waits for all that waits now.
std::int64_t PrefixBound::by_paths(const TimelineState& state, std::int64_t now) {
  const std::uint32_t nodes = any_.representatives;
  const bool in_order = any_.transfer_order == sim::TransferOrder::kReady;
  std::int64_t most = 0;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const TimelineState::Queue& codec = state.queues[kCodecQueue * nodes + node];
    const TimelineState::Queue& egress = state.queues[kEgress * nodes + node];
    codec_free_[node] = std::max(now, codec.until);
    egress_free_[node] = std::max(now, egress.until);
    most = std::max(most, by_queue(codec, codec_free_[node]));
  }
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const TimelineState::Queue& ingress = state.queues[kIngress * nodes + node];
    for (std::size_t i = ingress.next; i < ingress.entries.size(); ++i) {
      const TimelineState::Entry& entry = ingress.entries[i];
      const PrefixOption& option = *prefix_[entry.unit];
      const Step& step = option.pattern->steps[entry.step];
      const std::int64_t start = std::max(now, ingress.until);
      most = std::max(most, start + (*option.tails)[entry.step]);
      egress_free_[any_.node_of(any_.units[entry.unit], step)] = start + step.work;
    }
  }
  for (std::uint32_t node = 0; node < nodes; ++node) {
    std::int64_t free = egress_free_[node];
    const std::int64_t waiting = by_queue(state.queues[kEgress * nodes + node], free);
    if (!in_order) continue;
    most = std::max(most, waiting);
    egress_free_[node] = free;
  }
  for (std::size_t place = state.next; place < options_.size(); ++place) {
    if (place < prefix_.size()) {
      most = std::max(most, by_path(*prefix_[place], any_.units[place].ready));
      continue;
    }
    std::int64_t fastest = kNever;
    for (const PrefixOption& option : options_[place]) {
      fastest = std::min(fastest, by_path(option, any_.units[place].ready));
    }
    most = std::max(most, fastest);
  }
  return most;
}

std::int64_t PrefixBound::by_path(const PrefixOption& option, std::int64_t ready) const {
  auto most = static_cast<std::int64_t>(option.end);
  for (std::uint32_t node = 0; node < any_.representatives; ++node) {
    most = std::max({most, std::max(ready, egress_free_[node]) + option.egress_tails[node],
                     std::max(ready, codec_free_[node]) + option.codec_tails[node]});
  }
  return most;
}

}  // namespace hipress::planner
