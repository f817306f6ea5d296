#include "planner/timing/pattern_simulator.hpp"

#include <algorithm>
#include <tuple>

namespace hipress::planner {
namespace {

constexpr std::uint32_t kArrival = std::uint32_t{1} << 31;
constexpr std::size_t kStates = 24;  // number of states that a recording keeps
constexpr std::uint32_t kInstantsPerQuestion = 1024;
// Entry in `waits` for an AllReduce that is complete, instead of its number of predecessors.
constexpr std::uint16_t kDone = UINT16_MAX;

bool before(const TimelineState::Entry& a, const TimelineState::Entry& b) {
  return std::tie(a.key.first, a.key.second, a.step) < std::tie(b.key.first, b.key.second, b.step);
}

/// Number of units, from the first one, that are equal in both graphs.
std::uint32_t common_units(const PatternGraph& a, const PatternGraph& b) {
  const auto differ = std::mismatch(a.units.begin(), a.units.end(), b.units.begin(), b.units.end());
  return static_cast<std::uint32_t>(differ.first - a.units.begin());
}

std::size_t most_collectives(const PatternGraph& graph) {
  std::size_t most = 0;
  for (const PlacedUnit& unit : graph.units) {
    most = std::max(most, unit.pattern->collectives.size());
  }
  return most;
}

/// Number of units, at most `common`, before whose release both simulations are alike. With
/// all-reduces of several stages it may be lower, as a later stage may wait for following units.
std::uint32_t alike_before(std::uint32_t common, const PatternGraph& a, const PatternGraph& b) {
  const std::size_t most = std::max(most_collectives(a), most_collectives(b));
  const auto later = static_cast<std::uint32_t>(most > 1 ? most - 1 : 0);
  return common == a.units.size() && common == b.units.size() ? common
                                                              : common - std::min(common, later);
}

bool alike(const PatternGraph& a, const PatternGraph& b) {
  return a.representatives == b.representatives && a.transfer_order == b.transfer_order &&
         a.compute_end == b.compute_end;
}

}  // namespace

void TimelineState::Events::add(const Event& event) {
  std::size_t at = all.size();
  all.push_back(event);
  for (; at > next && event.time < all[at - 1].time; --at) all[at] = all[at - 1];
  all[at] = event;
}

TimelineState::Event TimelineState::Events::take() {
  const Event first = all[next++];
  if (next == all.size()) {
    all.clear();
    next = 0;
  } else if (next > 64 && 2 * next > all.size()) {
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(next));
    next = 0;
  }
  return first;
}

bool TimelineState::Events::operator==(const Events& other) const {
  const std::span<const Event> mine = coming(), theirs = other.coming();
  return std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end());
}

void TimelineState::Queue::add(const Entry& entry) {
  if (next > 64 && 2 * next > entries.size()) {
    entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(next));
    next = 0;
  }
  std::size_t at = entries.size();
  entries.push_back(entry);
  for (; at > next && before(entry, entries[at - 1]); --at) entries[at] = entries[at - 1];
  entries[at] = entry;
}

TimelineState::Entry TimelineState::Queue::take() {
  const Entry first = entries[next++];
  if (next == entries.size()) {
    entries.clear();
    next = 0;
  }
  return first;
}

bool TimelineState::Queue::operator==(const Queue& other) const {
  return busy == other.busy &&
         std::equal(entries.begin() + static_cast<std::ptrdiff_t>(next), entries.end(),
                    other.entries.begin() + static_cast<std::ptrdiff_t>(other.next),
                    other.entries.end());
}

std::int64_t PatternSimulator::run(const PatternGraph& graph, std::int64_t limit,
                                   const Recording* base) {
  begin(graph, base);
  return go(limit, base, nullptr);
}

Recording PatternSimulator::record(const PatternGraph& graph) {
  Recording recording;
  recording.graph = graph;
  begin(recording.graph, nullptr);
  recording.iteration = go(kNever, nullptr, &recording);
  return recording;
}

void PatternSimulator::begin(const PatternGraph& graph, const Recording* base) {
  graph_ = &graph;
  place_units();
  const TimelineState* from = nullptr;
  if (base && alike(graph, base->graph)) {
    const std::uint32_t common = alike_before(common_units(graph, base->graph), graph, base->graph);
    for (const TimelineState& state : base->states) {
      const bool differs_before =
          state.next < graph.units.size() && graph.units[state.next].ready <= state.now;
      if (state.next > common || differs_before) break;
      from = &state;
    }
  }
  std::int64_t codec = 0, port = 0;
  for (const PlacedUnit& unit : graph.units) {
    codec += unit.pattern->codec_work;
    port += unit.pattern->port_work;
  }
  if (!from) {
    state_ = {};
    state_.queues.resize(std::size_t{kQueueSorts} * graph.representatives);
    state_.codec_left = codec;
    state_.port_left = port;
    return;
  }
  restore(*from);
  for (const PlacedUnit& unit : base->graph.units) {
    codec -= unit.pattern->codec_work;
    port -= unit.pattern->port_work;
  }
  state_.codec_left += codec;  // the graphs differ only in units after this state
  state_.port_left += port;
}

void PatternSimulator::place_units() {
  const std::size_t count = graph_->units.size();
  touched_streams_.resize(std::size_t{2} * graph_->representatives);
  port_rule_.resize(graph_->representatives);
  units_.resize(count);
  offset_.resize(count + 1);
  std::size_t offset = 0;
  for (std::uint32_t unit = 0; unit < count; ++unit) {
    const Pattern& pattern = *graph_->units[unit].pattern;
    offset_[unit] = offset;
    offset += pattern.count();
  }
  offset_.back() = offset;
  if (waits_.size() < offset) waits_.resize(offset);
  for (std::size_t i = 0; i < count; ++i) {
    const PlacedUnit& placed = graph_->units[i];
    units_[i] = {.steps = placed.pattern->steps.data(),
                 .successors = placed.pattern->successors.data(),
                 .waits = waits_.data() + offset_[i],
                 .rotation = placed.rotation(graph_->representatives),
                 .index = placed.index,
                 .carried = placed.carried,
                 .is_collective = placed.pattern->is_collective()};
  }
  place_collectives();
}

/// Orders all-reduces as casync::collective_order() does: by unit place + stage, then by stage.
void PatternSimulator::place_collectives() {
  const std::vector<PlacedUnit>& units = graph_->units;
  collectives_.clear();
  place_of_collective_.clear();
  first_collective_.clear();
  std::size_t most = 0;
  for (const PlacedUnit& unit : units) {
    first_collective_.push_back(static_cast<std::uint32_t>(place_of_collective_.size()));
    const std::size_t count = unit.pattern->collectives.size();
    place_of_collective_.resize(place_of_collective_.size() + count);
    most = std::max(most, count);
  }
  for (std::size_t place = 0; most > 0 && place + 1 < units.size() + most; ++place) {
    for (std::size_t stage = 0; stage < most && stage <= place; ++stage) {
      const std::size_t unit = place - stage;
      if (unit >= units.size() || stage >= units[unit].pattern->collectives.size()) continue;
      place_of_collective_[first_collective_[unit] + stage] =
          static_cast<std::uint32_t>(collectives_.size());
      collectives_.push_back({static_cast<std::uint32_t>(unit), static_cast<std::uint32_t>(stage)});
    }
  }
}

/// The node's AllReduce step of a collective, as an index into the steps of its unit.
std::uint32_t PatternSimulator::step_of_collective(std::size_t which, std::uint32_t node) const {
  const Collective& collective = collectives_[which];
  const Unit& unit = units_[collective.unit];
  return graph_->units[collective.unit].pattern->collectives[collective.stage] +
         rotated(node + graph_->representatives - unit.rotation);
}

std::int64_t PatternSimulator::next_time() const {
  const std::int64_t unit = state_.next < units_.size() ? graph_->units[state_.next].ready : kNever;
  std::int64_t time = unit;
  for (const TimelineState::Events& events : state_.events) time = std::min(time, events.time());
  return time;
}

std::int64_t PatternSimulator::go(std::int64_t limit, const Recording* base, Recording* recording) {
  const std::vector<PlacedUnit>& units = graph_->units;
  const std::size_t stride = units.size() / kStates + 1;
  std::size_t next_state = 0, shared_from = units.size();
  if (base && alike(*graph_, base->graph) && base->graph.units.size() == units.size()) {
    while (shared_from > 0 && units[shared_from - 1] == base->graph.units[shared_from - 1]) {
      --shared_from;
    }
  }
  std::size_t met = 0;
  const auto representatives = static_cast<std::int64_t>(graph_->representatives);
  const bool limited = limit < kNever / (2 * representatives);
  while (true) {
    now_ = next_time();
    if (now_ == kNever) break;
    if (++instants_ % kInstantsPerQuestion == 0 && stop_ && stop_()) throw sim::Stopped();
    const bool releases = state_.next < units.size() && units[state_.next].ready == now_;
    if (releases && recording && state_.next >= next_state) {
      recording->states.push_back(snapshot());
      next_state = state_.next + stride;
    }
    if (releases && state_.next >= shared_from) {
      while (met < base->states.size() && base->states[met].next < state_.next) ++met;
      if (met < base->states.size() && base->states[met].next == state_.next &&
          meets(base->states[met], base->graph)) {
        const std::int64_t end = std::max(state_.end, base->iteration);
        return end > limit ? kNever : end;
      }
    }
    const std::int64_t left = std::max(state_.codec_left, state_.port_left);
    if (limited && (now_ > limit || left >= (limit - now_ + 1) * representatives)) return kNever;
    while (instant()) {
    }
    state_.now = now_;
  }
  const std::int64_t end = std::max(state_.end, graph_->compute_end);
  return end > limit ? kNever : end;
}

/// Runs one round of the instant now_: processes events, then starts steps on idle resources.
/// Returns false if nothing was left to do at this instant.
bool PatternSimulator::instant() {
  bool any = false;
  for (TimelineState::Events& events : state_.events) {
    while (events.time() == now_) {
      take(events.take());
      any = true;
    }
  }
  const std::vector<PlacedUnit>& units = graph_->units;
  if (state_.next < units.size() && units[state_.next].ready == now_) {
    const std::uint32_t round = units[state_.next].round;
    const bool due = round <= round_ || !any;
    if (due) {
      round_ = round;
      release(state_.next++);
      any = true;
    }
  }
  if (!any) {
    round_ = 0;
    return false;
  }
  ++round_;
  dispatch();
  return true;
}

void PatternSimulator::release(std::uint32_t unit) {
  const Pattern& pattern = *graph_->units[unit].pattern;
  std::copy(pattern.waits.begin(), pattern.waits.end(),
            waits_.begin() + static_cast<std::ptrdiff_t>(offset_[unit]));
  units_[unit].open = pattern.count();
  if (!pattern.is_collective()) {
    for (const std::uint32_t step : pattern.sources) make_ready(unit, step);
    return;
  }
  hold_collectives(unit);
  for (const std::uint32_t step : pattern.sources) {
    if (waits_[offset_[unit] + step] == 0) make_ready(unit, step);
  }
}

/// Makes each AllReduce of the unit wait for its node's previous one, if that is not complete.
void PatternSimulator::hold_collectives(std::uint32_t unit) {
  const std::size_t count = graph_->units[unit].pattern->collectives.size();
  for (std::size_t stage = 0; stage < count; ++stage) {
    const std::uint32_t place = place_of_collective_[first_collective_[unit] + stage];
    if (place == 0) continue;
    const std::uint32_t before = collectives_[place - 1].unit;
    if (before < state_.oldest) continue;
    for (std::uint32_t node = 0; node < graph_->representatives; ++node) {
      const bool done = before < state_.next &&
                        waits_[offset_[before] + step_of_collective(place - 1, node)] == kDone;
      if (!done) ++waits_[offset_[unit] + step_of_collective(place, node)];
    }
  }
}

/// Lets the node's next AllReduce start, if its unit is ready and it waits for nothing else.
void PatternSimulator::end_collective(std::uint32_t unit, std::uint32_t step) {
  const std::uint32_t representatives = graph_->representatives;
  const std::vector<std::uint32_t>& firsts = graph_->units[unit].pattern->collectives;
  const auto first = std::find_if(firsts.begin(), firsts.end(), [&](std::uint32_t one) {
    return step >= one && step < one + representatives;
  });
  if (first == firsts.end()) return;
  waits_[offset_[unit] + step] = kDone;
  const auto stage = static_cast<std::size_t>(first - firsts.begin());
  const std::uint32_t behind = place_of_collective_[first_collective_[unit] + stage] + 1;
  if (behind == collectives_.size() || collectives_[behind].unit >= state_.next) return;
  const std::uint32_t next_unit = collectives_[behind].unit;
  const std::uint32_t next =
      step_of_collective(behind, rotated(step - *first + units_[unit].rotation));
  if (--waits_[offset_[next_unit] + next] == 0) make_ready(next_unit, next);
}

void PatternSimulator::take(const Event& event) {
  if ((event.step & kArrival) != 0) return arrive(event.unit, event.step & ~kArrival);
  const Unit& unit = units_[event.unit];
  const Step& step = unit.steps[event.step];
  ++steps_;
  state_.end = now_;
  const std::uint32_t node = node_of(unit, step);
  if (step.resource == Resource::kPorts) {
    const std::uint32_t receiver = receiver_of(unit, step);
    port_rule_.left(queue(kEgress, node), node, queue(kIngress, receiver), receiver);
  } else {
    const std::uint32_t number = number_of_stream(step.resource, node);
    Queue& stream = state_.queues[number];
    stream.busy = false;
    if (!stream.empty()) touched_streams_.add(stream, number);
  }
  if (step.delay == 0) {
    arrive(event.unit, event.step);
  } else {
    state_.events[TimelineState::kArrivals].add(
        {now_ + step.delay, event.unit, event.step | kArrival});
  }
}

void PatternSimulator::arrive(std::uint32_t number, std::uint32_t step) {
  state_.end = now_;
  Unit& unit = units_[number];
  --unit.open;
  if (unit.is_collective) end_collective(number, step);
  const std::uint32_t last = unit.steps[step + 1].successors;
  for (std::uint32_t i = unit.steps[step].successors; i < last; ++i) {
    const std::uint32_t next = unit.successors[i];
    if (--unit.waits[next] == 0) make_ready(number, next);
  }
}

void PatternSimulator::make_ready(std::uint32_t number, std::uint32_t number_of_step) {
  const Unit& unit = units_[number];
  const Step& step = unit.steps[number_of_step];
  const std::uint32_t node = node_of(unit, step);
  const std::uint32_t gradient = step.factor == 0 ? unit.index : unit.carried + step.factor - 1;
  Entry entry = {sim::key_by_ready(now_, gradient), number_of_step, number};
  if (step.resource != Resource::kPorts) {
    const std::uint32_t stream = number_of_stream(step.resource, node);
    state_.queues[stream].add(entry);
    if (!state_.queues[stream].busy) touched_streams_.add(state_.queues[stream], stream);
    return;
  }
  if (graph_->transfer_order == sim::TransferOrder::kNeed) {
    entry.key = sim::key_by_need(now_, graph_->units[number].need);
  }
  queue(kEgress, node).add(entry);
  port_rule_.joined_egress(queue(kEgress, node), node);
}

/// Starts the next step on every idle resource that has one.
void PatternSimulator::dispatch() {
  for (const std::uint32_t number : touched_streams_.indices()) {
    Queue& stream = state_.queues[number];
    stream.touched = false;
    stream.busy = true;
    start(stream.take(), TimelineState::kOtherEnds);
  }
  touched_streams_.clear();
  port_rule_.serve(
      &queue(kEgress, 0), &queue(kIngress, 0),
      [this](Queue& egress, std::uint32_t) {
        const Entry head = egress.take();
        const Unit& unit = units_[head.unit];
        const std::uint32_t receiver = receiver_of(unit, unit.steps[head.step]);
        queue(kIngress, receiver).add(head);
        port_rule_.joined_ingress(queue(kIngress, receiver), receiver);
      },
      [this](Queue& ingress, std::uint32_t) { start(ingress.take(), TimelineState::kPortEnds); });
}

void PatternSimulator::start(const Entry& entry, std::size_t sort_of_end) {
  const Unit& unit = units_[entry.unit];
  const Step& step = unit.steps[entry.step];
  if (step.resource == Resource::kCodec) state_.codec_left -= step.work;
  if (step.resource == Resource::kPorts) state_.port_left -= step.work;
  state_.events[sort_of_end].add({now_ + step.work, entry.unit, entry.step});
}

TimelineState PatternSimulator::snapshot() const {
  TimelineState copy = state_;
  while (copy.oldest < copy.next && units_[copy.oldest].open == 0) ++copy.oldest;
  const auto first = static_cast<std::ptrdiff_t>(offset_[copy.oldest]);
  const auto last = static_cast<std::ptrdiff_t>(offset_[copy.next]);
  copy.waits.assign(waits_.begin() + first, waits_.begin() + last);
  copy.open.clear();
  for (std::uint32_t unit = copy.oldest; unit < copy.next; ++unit) {
    copy.open.push_back(units_[unit].open);
  }
  return copy;
}

void PatternSimulator::restore(const TimelineState& state) {
  state_ = state;
  std::copy(state.waits.begin(), state.waits.end(),
            waits_.begin() + static_cast<std::ptrdiff_t>(offset_[state.oldest]));
  for (std::size_t i = 0; i < state.open.size(); ++i) {
    units_[state.oldest + i].open = state.open[i];
  }
  round_ = 0;
}

/// True if the rest of both simulations is the same. Both must be just before the same unit.
bool PatternSimulator::meets(const TimelineState& other, const PatternGraph& graph) const {
  if (!(state_.events == other.events && state_.queues == other.queues)) return false;
  std::uint32_t oldest = state_.oldest;
  while (oldest < state_.next && units_[oldest].open == 0) ++oldest;
  if (oldest != other.oldest) return false;
  const bool same_units =
      std::equal(graph.units.begin() + oldest, graph.units.begin() + state_.next,
                 graph_->units.begin() + oldest);
  if (!same_units) return false;
  const bool as_open =
      std::equal(other.open.begin(), other.open.end(), units_.begin() + oldest,
                 [](std::uint32_t open, const Unit& unit) { return open == unit.open; });
  if (!as_open) return false;
  const auto first = waits_.begin() + static_cast<std::ptrdiff_t>(offset_[oldest]);
  return offset_[state_.next] - offset_[oldest] == other.waits.size() &&
         std::equal(other.waits.begin(), other.waits.end(), first);
}

}  // namespace hipress::planner
