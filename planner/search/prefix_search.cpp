#include "planner/search/prefix_search.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "sim/jitter.hpp"
#include "sim/parallel.hpp"

namespace hipress::planner {
namespace {

/// 128 bits that say which numbers were added, so that no two of some millions of sequences have
/// the same by accident: two accumulators of XXH64 (Collet 2012).
class Fingerprint {
 public:
  void add(std::int64_t number) {
    const auto bits = static_cast<std::uint64_t>(number);
    first_ = std::rotl(first_ + bits * kSecond, 31) * kFirst;
    second_ = std::rotl(second_ + bits * kThird, 29) * kSecond;
  }
  void add(std::uint32_t high, std::uint32_t low) { add((std::int64_t{high} << 32) | low); }
  std::pair<std::uint64_t, std::uint64_t> take() const {
    return {sim::mix(first_), sim::mix(second_ ^ first_)};
  }

 private:
  static constexpr std::uint64_t kFirst = 0x9e3779b185ebca87u, kSecond = 0xc2b2ae3d27d4eb4fu,
                                 kThird = 0x165667b19e3779f9u;
  std::uint64_t first_ = kFirst, second_ = kThird;
};

/// Four numbers at a time.
void add_all(Fingerprint& print, std::span<const std::uint16_t> numbers) {
  for (std::size_t i = 0; i < numbers.size(); i += 4) {
    std::uint64_t four = 0;
    std::memcpy(&four, &numbers[i],
                std::min<std::size_t>(4, numbers.size() - i) * sizeof(numbers[0]));
    print.add(static_cast<std::int64_t>(four));
  }
}

using Print = std::pair<std::uint64_t, std::uint64_t>;

constexpr std::size_t kParts = 256;  // so many at least; more: threads are idle for less at the end

/// The best plan that any thread has found.
class Best {
 public:
  explicit Best(std::int64_t time) : time_(time) {}

  /// The most that a plan of this part may take to be better.
  std::int64_t limit(std::size_t part) {
    const std::lock_guard lock(mutex_);
    return part < part_ && found_ ? time_ : time_ - 1;
  }
  void offer(const Candidate& candidate, std::int64_t time, std::size_t part) {
    const std::lock_guard lock(mutex_);
    if (time > time_ || (time == time_ && (!found_ || part >= part_))) return;
    time_ = time;
    part_ = part;
    found_ = candidate;
  }
  std::int64_t time() const { return time_; }
  const std::optional<Candidate>& found() const { return found_; }

 private:
  std::mutex mutex_;
  std::int64_t time_;
  std::size_t part_ = 0;
  std::optional<Candidate> found_;
};

/// The states that prefixes have left, each with the first part that one of them belongs to.
class Visited {
 public:
  /// Whether a prefix of this part or one before left the same; notes that this one did.
  bool before(const Print& print, std::size_t part) {
    Shard& shard = shards_[print.first % shards_.size()];
    const std::lock_guard lock(shard.mutex);
    const auto [at, added] = shard.parts.try_emplace(print, static_cast<std::uint32_t>(part));
    if (added) return false;
    if (at->second <= part) return true;
    at->second = static_cast<std::uint32_t>(part);
    return false;
  }

 private:
  struct Shard {
    std::mutex mutex;
    std::map<Print, std::uint32_t> parts;
  };
  std::array<Shard, 16> shards_;
};

/// Plans that share a prefix.
struct Part {
  std::vector<const PrefixOption*> prefix;
  std::int64_t at_least = 0;
  TimelineState state;  ///< before the first gradient that is not in the prefix and is ready later
                        ///< than those in it
};

/// One thread's way through parts.
class Walk {
 public:
  Walk(const PrefixBound& bound, const ReadyTimes& ready, std::uint32_t scheme, Best& best,
       Visited& visited, const Limits& limits)
      : ready_(ready),
        bound_(bound),
        best_(best),
        visited_(visited),
        limits_(limits),
        prefix_(bound.any()) {
    prefix_.units.clear();
    candidate_ = {scheme, std::vector<std::uint16_t>(ready.order.size(), 0)};
    factors_ = {static_cast<std::uint32_t>(ready.order.size())};
  }

  /// Searches all plans of a part.
  void search(const Part& part, std::size_t number) {
    number_ = number;
    for (const PrefixOption* option : part.prefix) push(*option);
    if (part.at_least <= best_.limit(number_)) visit(part.state);
    for (std::size_t i = 0; i < part.prefix.size(); ++i) pop();
  }

  /// Divides a part by the options of its next gradient, the most promising first.
  void divide(const Part& part, std::vector<Part>& parts) {
    for (const PrefixOption* option : part.prefix) push(*option);
    for (Branch& branch : branches(part.state)) {
      parts.push_back({part.prefix, branch.at_least, std::move(branch.state)});
      parts.back().prefix.push_back(branch.option);
    }
    for (std::size_t i = 0; i < part.prefix.size(); ++i) pop();
  }

  std::int64_t simulated() const { return simulated_; }
  std::int64_t bounded() const { return bounded_; }
  bool complete() const { return complete_; }  ///< else it was interrupted

 private:
  /// An option of the gradient that comes next, and what all plans take with it.
  struct Branch {
    const PrefixOption* option = nullptr;
    std::int64_t at_least = 0;
    TimelineState state;  ///< before the next gradient that is ready later
  };

  void visit(const TimelineState& state);
  std::vector<Branch> branches(const TimelineState& state);
  bool advance(Branch& branch, const TimelineState& state, std::int64_t limit);
  void push(const PrefixOption& option);
  void pop();
  Print print_of(const TimelineState& state);

  const ReadyTimes& ready_;
  PrefixBound bound_;
  Best& best_;
  Visited& visited_;
  const Limits& limits_;
  PatternSimulator timeline_;
  PatternGraph prefix_;
  Candidate candidate_;                       // the prefix, and anything behind it
  std::vector<std::uint32_t> factors_;        // Task::gradient of the next factor, after each unit
  std::size_t number_ = 0;                    // of the part
  std::vector<TimelineState::Event> events_;  // of print_of()
  std::int64_t simulated_ = 0, bounded_ = 0;
  bool complete_ = true;
};

/// Searches all plans that begin with the prefix. `state` is before the first gradient that is
/// ready at the same time as the next.
void Walk::visit(const TimelineState& state) {
  if (is_interrupted(limits_)) {
    complete_ = false;
    return;
  }
  const bool last = prefix_.units.size() + 1 == bound_.any().units.size();
  for (const Branch& branch : branches(state)) {
    if (branch.at_least > best_.limit(number_)) return;
    push(*branch.option);
    if (last) {
      ++simulated_;
      const std::int64_t limit = best_.limit(number_);
      const std::int64_t time =
          timeline_.finish(prefix_, state, {limit, bound_.loads(state, limit)});
      if (time != kNever) best_.offer(candidate_, time, number_);
    } else {
      visit(branch.state);
    }
    pop();
  }
}

/// Options with which plans may be better than the best, the most promising first.
std::vector<Walk::Branch> Walk::branches(const TimelineState& state) {
  const std::vector<PlacedUnit>& units = bound_.any().units;
  const std::size_t place = prefix_.units.size();
  const bool last = place + 1 == units.size();
  const bool simulates = !last && units[place + 1].ready > units[place].ready;
  std::vector<Branch> branches;
  for (const PrefixOption& option : bound_.options(place)) {
    push(option);
    ++bounded_;
    const std::int64_t limit = best_.limit(number_);
    Branch branch = {.option = &option, .at_least = bound_.at_least(state), .state = {}};
    bool worth = branch.at_least <= limit;
    if (worth && simulates) {
      worth = advance(branch, state, limit);
    } else if (!last) {
      branch.state = state;
    }
    if (worth) branches.push_back(std::move(branch));
    pop();
  }
  std::stable_sort(branches.begin(), branches.end(),
                   [](const Branch& a, const Branch& b) { return a.at_least < b.at_least; });
  return branches;
}

/// Simulates the prefix on from `state` until the next gradient is ready. False if none of its
/// plans takes `limit` or less, or if another prefix left the same.
bool Walk::advance(Branch& branch, const TimelineState& state, std::int64_t limit) {
  std::optional<TimelineState> after =
      timeline_.advance(prefix_, state, bound_.any().units[prefix_.units.size()].ready,
                        {limit, bound_.loads(state, limit)});
  if (!after) return false;
  branch.state = std::move(*after);
  branch.at_least = std::max(branch.at_least, bound_.at_least(branch.state));
  return branch.at_least <= limit && !visited_.before(print_of(branch.state), number_);
}

void Walk::push(const PrefixOption& option) {
  const std::size_t place = prefix_.units.size();
  PlacedUnit& unit = prefix_.units.emplace_back(bound_.any().units[place]);
  unit.pattern = option.pattern;
  unit.tails = option.tails->data();
  factors_.push_back(unit.take_factors(factors_.back()));
  candidate_.options[ready_.order[place]] = option.option;
  bound_.push(option);
}

void Walk::pop() {
  prefix_.units.pop_back();
  factors_.pop_back();
  bound_.pop();
}

/// Of all that what happens from here on depends on.
Print Walk::print_of(const TimelineState& state) {
  Fingerprint print;
  print.add(state.next, factors_.back() % prefix_.representatives);
  for (const TimelineState::Events& sort : state.events) {
    const auto coming = sort.coming();
    events_.assign(coming.begin(), coming.end());
    std::sort(events_.begin(), events_.end(), [](const auto& a, const auto& b) {
      return std::tie(a.time, a.unit, a.step) < std::tie(b.time, b.unit, b.step);
    });
    print.add(static_cast<std::int64_t>(events_.size()));
    for (const TimelineState::Event& event : events_) {
      print.add(event.time);
      print.add(event.unit, event.step);
    }
  }
  for (const TimelineState::Queue& queue : state.queues) {
    print.add(queue.busy ? 1 : 0, static_cast<std::uint32_t>(queue.entries.size() - queue.next));
    for (std::size_t i = queue.next; i < queue.entries.size(); ++i) {
      const TimelineState::Entry& entry = queue.entries[i];
      print.add(entry.key.first + entry.key.second);  // one of them is the same for all of the unit
      print.add(entry.unit, entry.step);
    }
  }
  const std::uint16_t* waits = state.waits.data();
  for (std::uint32_t unit = state.oldest; unit < state.next; ++unit) {
    const std::uint32_t steps = prefix_.units[unit].pattern->count();
    const std::uint32_t open = state.open[unit - state.oldest];
    print.add(unit, open);
    if (open > 0) {
      print.add(candidate_.options[ready_.order[unit]], prefix_.units[unit].carried);
      add_all(print, std::span(waits, steps));
    }
    waits += steps;
  }
  return print.take();
}

}  // namespace

PrefixSearch::PrefixSearch(Evaluator& evaluator, std::uint32_t scheme, const ReadyTimes& ready,
                           const std::vector<std::vector<OptionWork>>& work)
    : ready_(ready), scheme_(scheme), bound_(evaluator, scheme, ready, work) {}

bool PrefixSearch::improve(Candidate& best, std::int64_t& time, const Limits& limits) {
  const std::size_t gradients = bound_.any().units.size();
  if (gradients == 0 || !bound_.prepare(time)) return false;
  Best shared(time);
  Visited visited;
  Walk first(bound_, ready_, scheme_, shared, visited, limits);
  std::vector<Part> parts(1);
  parts.front().state = PatternSimulator::beginning(bound_.any().representatives);
  for (std::size_t place = 0; place + 1 < gradients && parts.size() < kParts; ++place) {
    std::vector<Part> divided;
    for (const Part& part : parts) first.divide(part, divided);
    parts = std::move(divided);
  }
  std::vector<Walk> walks(std::max(1u, limits.jobs), first);
  sim::run_parallel(parts.size(), limits.jobs,
                    [&](std::size_t part, unsigned job) { walks[job].search(parts[part], part); });
  for (const Walk& walk : walks) {
    simulated_ += walk.simulated();
    bounded_ += walk.bounded() - first.bounded();
    complete_ = complete_ && walk.complete();
  }
  bounded_ += first.bounded();
  if (!shared.found()) return false;
  best = *shared.found();
  time = shared.time();
  return true;
}

}  // namespace hipress::planner
