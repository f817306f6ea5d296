#include "planner/prefix_search.hpp"

#include <algorithm>
#include <tuple>

#include "sim/jitter.hpp"

namespace hipress::planner {
namespace {

/// 128 bits that say which numbers were added, so that no two of some millions of sequences have
/// the same by accident.
class Fingerprint {
 public:
  void add(std::int64_t number) {
    const auto bits = static_cast<std::uint64_t>(number);
    first_ = sim::mix(first_ ^ bits);
    second_ = sim::mix(second_ + bits * 0x9e3779b97f4a7c15u);
  }
  void add(std::uint32_t high, std::uint32_t low) { add((std::int64_t{high} << 32) | low); }
  std::pair<std::uint64_t, std::uint64_t> take() const { return {first_, second_}; }

 private:
  std::uint64_t first_ = 0x9e3779b97f4a7c15u, second_ = 0xd1b54a32d192ed03u;
};

}  // namespace

PrefixSearch::PrefixSearch(Evaluator& evaluator, std::uint32_t shape, const ReadyTimes& ready,
                           const std::vector<std::vector<OptionWork>>& work)
    : ready_(ready), bound_(evaluator, shape, ready, work), prefix_(bound_.any()) {
  prefix_.units.clear();
  candidate_ = {shape, std::vector<std::uint16_t>(ready.order.size(), 0)};
}

bool PrefixSearch::improve(Candidate& best, std::int64_t& time) {
  best_time_ = time;
  improved_ = false;
  visited_.clear();
  if (!bound_.any().units.empty() && bound_.prepare(time)) {
    visit(0, Timeline::beginning(prefix_.orbits));
  }
  if (!improved_) return false;
  best = best_;
  time = best_time_;
  return true;
}

/// Searches all plans that begin with the prefix, gradients before `place`. `state` is before the
/// first that is ready at the same time as this one.
void PrefixSearch::visit(std::size_t place, const TimelineState& state) {
  const bool last = place + 1 == bound_.any().units.size();
  for (const Branch& branch : branches(place, state)) {
    if (branch.at_least >= best_time_) return;
    push(place, *branch.option);
    if (last) {
      ++simulated_;
      const std::int64_t time = timeline_.finish(prefix_, state, best_time_ - 1);
      if (time < best_time_) {
        best_ = candidate_;
        best_time_ = time;
        improved_ = true;
      }
    } else {
      visit(place + 1, branch.state);
    }
    pop();
  }
}

/// Options with which plans may be better than the best, the most promising first.
std::vector<PrefixSearch::Branch> PrefixSearch::branches(std::size_t place,
                                                         const TimelineState& state) {
  const std::vector<PlacedUnit>& units = bound_.any().units;
  const bool last = place + 1 == units.size();
  const bool simulates = !last && units[place + 1].ready > units[place].ready;
  std::vector<Branch> branches;
  for (const PrefixOption& option : bound_.options(place)) {
    push(place, option);
    ++bounded_;
    Branch branch = {.option = &option, .at_least = bound_.at_least(state), .state = {}};
    if (branch.at_least < best_time_ && simulates) {
      branch.state = timeline_.advance(prefix_, state, units[place + 1].ready);
      branch.at_least = std::max(branch.at_least, bound_.at_least(branch.state));
      if (branch.at_least < best_time_ && visited(branch.state)) branch.at_least = kNever;
    } else if (!last) {
      branch.state = state;
    }
    if (branch.at_least < best_time_) branches.push_back(std::move(branch));
    pop();
  }
  std::stable_sort(branches.begin(), branches.end(),
                   [](const Branch& a, const Branch& b) { return a.at_least < b.at_least; });
  return branches;
}

void PrefixSearch::push(std::size_t place, const PrefixOption& option) {
  PlacedUnit& unit = prefix_.units.emplace_back(bound_.any().units[place]);
  unit.pattern = option.pattern;
  candidate_.options[ready_.order[place]] = option.option;
  bound_.push(option);
}

void PrefixSearch::pop() {
  prefix_.units.pop_back();
  bound_.pop();
}

/// Whether another prefix left the same to do: what happens from here on is then the same.
bool PrefixSearch::visited(const TimelineState& state) {
  Fingerprint print;
  print.add(state.next);
  std::vector<TimelineState::Event> events = state.events;
  std::sort(events.begin(), events.end(), [](const auto& a, const auto& b) {
    return std::tie(a.time, a.unit, a.step) < std::tie(b.time, b.unit, b.step);
  });
  for (const TimelineState::Event& event : events) {
    print.add(event.time);
    print.add(event.unit, event.step);
  }
  for (const TimelineState::Queue& queue : state.queues) {
    print.add(queue.busy ? 1 : 0, static_cast<std::uint32_t>(queue.entries.size() - queue.next));
    for (std::size_t i = queue.next; i < queue.entries.size(); ++i) {
      const TimelineState::Entry& entry = queue.entries[i];
      print.add(entry.first);
      print.add(entry.second);
      print.add(entry.unit, entry.step);
    }
  }
  auto waits = state.waits.begin();
  for (std::uint32_t unit = state.oldest; unit < state.next; ++unit) {
    const std::uint32_t steps = prefix_.units[unit].pattern->count();
    const std::uint32_t open = state.open[unit - state.oldest];
    print.add(unit, open);
    if (open > 0) {
      print.add(candidate_.options[ready_.order[unit]]);
      std::for_each(waits, waits + steps, [&](std::uint16_t wait) { print.add(wait); });
    }
    waits += steps;
  }
  return !visited_.insert(print.take()).second;
}

}  // namespace hipress::planner
