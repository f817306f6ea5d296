#include "sim/sharing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace hipress::sim {
namespace {

__extension__ using SignedWide = __int128;

constexpr std::uint64_t kWhole = std::uint64_t{1} << 32;

/// Levels that differ by less than kSameLevel count as equal, and a speed less than kAlmost below a
/// whole number of units is rounded up to it. In exact arithmetic these are ties and whole numbers;
/// rounding in double precision, which depends on the order of terms, must not break them.
constexpr double kSameLevel = 1 + 0x1p-40;
constexpr double kAlmost = 0x1p-16;
/// Relative difference of levels that may be due to rounding alone.
constexpr double kRounding = 0x1p-46;
constexpr double kLoadUnit = 0x1p40;  // units of Capacity::load in 1; sums fit in 64 bits
constexpr std::uint32_t kNoCapacity = ~std::uint32_t{0};

bool is_same(double level, double other) {
  return level == other || std::abs(level - other) <= kRounding * std::min(level, other);
}

std::int64_t load_of(double level, double weight, double amount) {
  return static_cast<std::int64_t>(std::min(1.0, level * weight) * amount * kLoadUnit);
}

}  // namespace

void Sharing::set_overlap(const costs::DirectedFactors& factors, std::uint32_t nodes) {
  nodes_.resize(nodes);
  for (std::size_t sorts = 0; sorts < slowdowns_.size(); ++sorts) {
    const auto units_if = [&](Sort sort, double factor) -> std::uint64_t {
      if ((sorts >> static_cast<int>(sort) & 1) == 0) return 4096;
      return static_cast<std::uint64_t>(factor * 4096 + 0.5);
    };
    slowdowns_[sorts] = {units_if(Sort::kCodec, factors.compute_beside_codec) *
                             units_if(Sort::kTransfer, factors.compute_beside_transfer),
                         units_if(Sort::kCompute, factors.codec_beside_compute) *
                             units_if(Sort::kTransfer, factors.codec_beside_transfer),
                         units_if(Sort::kCompute, factors.transfer_beside_compute) *
                             units_if(Sort::kCodec, factors.transfer_beside_codec)};
  }
}

std::uint64_t Sharing::slowdown(const Place& place) const {
  const auto on = [&](const Node& node) {
    std::size_t sorts = 0;
    for (std::size_t sort = 0; sort < node.running.size(); ++sort) {
      if (node.running[sort] > 0) sorts |= std::size_t{1} << sort;
    }
    return slowdowns_[sorts][static_cast<std::size_t>(place.sort)];
  };
  return std::max(on(nodes_[place.node]), on(nodes_[place.other_node]));
}

void Sharing::enter(Slot slot, std::uint32_t index) {
  Node& node = nodes_[index];
  node.activities.push_back(slot);
  if (node.running[static_cast<std::size_t>(activities_[slot].place.sort)]++ > 0) return;
  if (!node.changed) changed_nodes_.push_back(index);
  node.changed = true;
}

void Sharing::leave(Slot slot, std::uint32_t index) {
  Node& node = nodes_[index];
  *std::find(node.activities.begin(), node.activities.end(), slot) = node.activities.back();
  node.activities.pop_back();
  if (--node.running[static_cast<std::size_t>(activities_[slot].place.sort)] > 0) return;
  if (!node.changed) changed_nodes_.push_back(index);
  node.changed = true;
}

std::uint32_t Sharing::add_capacity(double amount) {
  Capacity& capacity = capacities_.emplace_back();
  capacity.amount = amount;
  if (amount <= 1 && amount * kWhole >= 1) {
    const auto parts = static_cast<std::uint32_t>(1 / amount);
    if (parts * amount == 1) capacity.parts = parts;
  }
  return static_cast<std::uint32_t>(capacities_.size() - 1);
}

Sharing::Slot Sharing::start(casync::TaskId task, std::int64_t work, double weight,
                             const Uses& uses, std::int64_t now, const Place& place) {
  Slot slot;
  if (free_.empty()) {
    slot = static_cast<Slot>(activities_.size());
    activities_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  Activity& activity = activities_[slot];
  activity.task = task;
  activity.remaining = work;
  activity.updated = now;
  activity.share = {};
  activity.speed = {};
  activity.level = 0;
  activity.place = place;
  activity.weight = weight;
  activity.uses = uses;
  for (std::uint32_t i = 0; i < uses.count; ++i) {
    std::vector<Slot>& users = capacities_[uses.items[i].capacity].users;
    activity.position[i] = static_cast<std::uint32_t>(users.size());
    users.push_back(slot);
  }
  if (uses.count == 0) {
    fresh_.push_back(slot);
  } else if (take_place(activity)) {
    touched_.push_back(slot);
  } else {
    mark_changed(uses);
    started_.push_back(slot);
  }
  if (!nodes_.empty()) {
    enter(slot, place.node);
    if (place.other_node != place.node) enter(slot, place.other_node);
  }
  return slot;
}

casync::TaskId Sharing::finish(Slot slot) {
  Activity& activity = activities_[slot];
  for (std::uint32_t i = 0; i < activity.uses.count; ++i) {
    const std::uint32_t capacity = activity.uses.items[i].capacity;
    std::vector<Slot>& users = capacities_[capacity].users;
    const std::uint32_t hole = activity.position[i];
    const Slot moved = users.back();
    users[hole] = moved;
    users.pop_back();
    if (moved == slot) continue;
    Activity& other = activities_[moved];
    for (std::uint32_t j = 0; j < other.uses.count; ++j) {
      if (other.uses.items[j].capacity == capacity) other.position[j] = hole;
    }
  }
  const bool shared = activity.uses.count > 0 && activity.share != Speed{};
  const double level = activity.level;
  set_level(activity, 0);
  if (shared && vacancies_.size() < kMaxVacancies) {
    vacancies_.push_back({activity.uses, activity.weight, level, activity.share});
  } else {
    mark_changed(activity.uses);
  }
  if (!nodes_.empty()) {
    leave(slot, activity.place.node);
    if (activity.place.other_node != activity.place.node) leave(slot, activity.place.other_node);
  }
  ++activity.version;
  free_.push_back(slot);
  return activity.task;
}

/// Gives an activity the share of an ended one with the same weight and uses, if there is one.
bool Sharing::take_place(Activity& activity) {
  const auto found = std::ranges::find_if(vacancies_, [&](const Vacancy& vacancy) {
    return vacancy.weight == activity.weight && vacancy.uses == activity.uses;
  });
  if (found == vacancies_.end()) return false;
  activity.share = found->share;
  set_level(activity, found->level);
  *found = vacancies_.back();
  vacancies_.pop_back();
  return true;
}

void Sharing::mark_changed(const Uses& uses) {
  for (std::uint32_t i = 0; i < uses.count; ++i) {
    Capacity& capacity = capacities_[uses.items[i].capacity];
    if (capacity.changed) continue;
    capacity.changed = true;
    changed_.push_back(uses.items[i].capacity);
  }
}

void Sharing::settle(std::int64_t now, EventQueue& events) {
  for (const Slot slot : fresh_) {
    activities_[slot].share = {1, 1};
    touched_.push_back(slot);
  }
  fresh_.clear();
  for (const Vacancy& vacancy : vacancies_) mark_changed(vacancy.uses);
  vacancies_.clear();
  if (!changed_.empty() && !adjust()) fill_connected();
  for (const std::uint32_t capacity : changed_) capacities_[capacity].changed = false;
  changed_.clear();
  started_.clear();
  for (const std::uint32_t index : changed_nodes_) {
    Node& node = nodes_[index];
    node.changed = false;
    touched_.insert(touched_.end(), node.activities.begin(), node.activities.end());
  }
  changed_nodes_.clear();
  for (const Slot slot : touched_) apply(slot, now, events);
  touched_.clear();
}

/// Recomputes levels until nothing changes. Gives up and returns false if that would take longer
/// than filling all connected capacities anew.
bool Sharing::adjust() {
  const std::size_t running = activities_.size() - free_.size();
  const std::size_t most = running / 2 + 64;
  std::size_t looked_at = 0;  // users of the capacities that were recomputed
  for (const std::uint32_t id : changed_) {
    if (capacities_[id].is_full()) mark_dirty(id);
  }
  for (const Slot slot : started_) move(slot, kNoCapacity);
  for (std::size_t next = 0; next < dirty_.size() && looked_at <= most; ++next) {
    const std::uint32_t id = dirty_[next];
    capacities_[id].dirty = false;
    looked_at += capacities_[id].users.size();
    if (!fill_alone(id)) continue;
    for (const Slot slot : capacities_[id].users) move(slot, id);
  }
  for (const std::uint32_t id : dirty_) capacities_[id].dirty = false;
  dirty_.clear();
  for (const Slot slot : moved_) {
    Activity& activity = activities_[slot];
    activity.moved = false;
    if (looked_at > most) continue;
    const Speed share = share_at_level(activity);
    if (activity.share == share) continue;
    activity.share = share;
    touched_.push_back(slot);
  }
  moved_.clear();
  return looked_at <= most;
}

void Sharing::mark_dirty(std::uint32_t capacity) {
  if (std::exchange(capacities_[capacity].dirty, true)) return;
  dirty_.push_back(capacity);
}

/// Level at which an activity stops rising, if capacity `but` is ignored.
double Sharing::level_of(const Activity& activity, std::uint32_t but) const {
  double level = 1 / activity.weight;
  for (std::uint32_t i = 0; i < activity.uses.count; ++i) {
    const std::uint32_t capacity = activity.uses.items[i].capacity;
    if (capacity != but) level = std::min(level, capacities_[capacity].level);
  }
  return level;
}

void Sharing::set_level(Activity& activity, double level) {
  for (std::uint32_t i = 0; i < activity.uses.count; ++i) {
    const Use& use = activity.uses.items[i];
    capacities_[use.capacity].load += load_of(level, activity.weight, use.amount) -
                                      load_of(activity.level, activity.weight, use.amount);
  }
  activity.level = level;
}

/// Progressive filling of one capacity, whose users each rise at most to the level that their other
/// capacities allow. False if its level and `equals` stay as they were.
bool Sharing::fill_alone(std::uint32_t id) {
  Capacity& capacity = capacities_[id];
  limited_.clear();
  bool plain = capacity.parts > 0;
  double demand = 0, most = 0;
  for (const Slot slot : capacity.users) {
    const Activity& activity = activities_[slot];
    double amount = 0;
    for (std::uint32_t i = 0; i < activity.uses.count; ++i) {
      if (activity.uses.items[i].capacity == id) amount = activity.uses.items[i].amount;
    }
    const double level = level_of(activity, id);
    limited_.push_back(
        {level, amount * activity.weight, amount * std::min(1.0, level * activity.weight)});
    plain = plain && amount == 1 && activity.weight == 1;
    demand += limited_.back().demand;
    most += limited_.back().most;
  }
  double level = kNotFull;
  if (most * kSameLevel >= capacity.amount) level = level_of_limited(capacity.amount, demand);
  plain = plain && level < kNotFull && limited_.size() == capacity.users.size();
  const std::uint64_t equals = plain ? std::uint64_t{capacity.parts} * capacity.users.size() : 0;
  const bool as_before = is_same(level, capacity.level);
  if (as_before && equals == capacity.equals) return false;
  if (!as_before) capacity.level = level;
  capacity.equals = equals;
  return true;
}

/// Level at which the users in limited_ fill the amount, or kNotFull. Removes the users that stop
/// at a lower level from limited_.
double Sharing::level_of_limited(double amount, double demand) {
  double used = 0, level = 0;
  for (bool again = true; again && !limited_.empty();) {
    level = std::max(0.0, amount - used) / demand;
    again = std::erase_if(limited_, [&](const Limited& limited) {
              if (limited.level * kSameLevel >= level) return false;
              used += limited.most;
              demand -= limited.demand;
              return true;
            }) > 0;
  }
  return limited_.empty() ? kNotFull : level;
}

/// Updates an activity's level after that of capacity `because_of` has changed. Marks each other
/// capacity of the activity dirty whose level may change: a full one, unless it limits the activity
/// both before and after; another one, if it may become full.
void Sharing::move(Slot slot, std::uint32_t because_of) {
  Activity& activity = activities_[slot];
  if (!std::exchange(activity.moved, true)) moved_.push_back(slot);
  const double before = activity.level;
  const double level = level_of(activity, kNoCapacity);
  if (is_same(level, before)) return;
  set_level(activity, level);
  for (std::uint32_t i = 0; i < activity.uses.count; ++i) {
    const std::uint32_t id = activity.uses.items[i].capacity;
    if (id == because_of) continue;
    const Capacity& capacity = capacities_[id];
    const bool changes = capacity.is_full()
                             ? std::min(level, before) < capacity.level * (1 - kRounding)
                             : level > before && may_be_full(capacity);
    if (changes) mark_dirty(id);
  }
}

bool Sharing::may_be_full(const Capacity& capacity) {
  const auto rounded_off = static_cast<double>(capacity.users.size());
  return static_cast<double>(capacity.load) + rounded_off >= capacity.amount * kLoadUnit;
}

Sharing::Speed Sharing::share_at_level(const Activity& activity) const {
  const double same_level = activity.level * kSameLevel;
  if (1 / activity.weight <= same_level) return {1, 1};
  const double units = activity.level * activity.weight * kWhole + kAlmost;
  Speed speed{std::max<std::uint64_t>(1, static_cast<std::uint64_t>(units)), kWhole};
  for (std::uint32_t i = 0; i < activity.uses.count; ++i) {
    const Capacity& capacity = capacities_[activity.uses.items[i].capacity];
    if (capacity.level <= same_level && capacity.equals > 0) speed = {1, capacity.equals};
  }
  return speed;
}

/// Fills every component that contains a changed capacity.
void Sharing::fill_connected() {
  for (const std::uint32_t capacity : changed_) {
    if (!capacities_[capacity].changed) continue;  // its component is done
    component_.clear();
    component_capacities_.clear();
    collect(capacity);
    fill();
    keep_shares();
    for (const std::uint32_t member : component_capacities_) {
      capacities_[member].changed = false;
      capacities_[member].visited = false;
    }
  }
}

/// Collects the component of capacity `first`: breadth first over capacities and their users.
void Sharing::collect(std::uint32_t first) {
  component_capacities_.push_back(first);
  capacities_[first].visited = true;
  for (std::size_t next = 0; next < component_capacities_.size(); ++next) {
    for (const Slot slot : capacities_[component_capacities_[next]].users) {
      Activity& activity = activities_[slot];
      if (activity.visited) continue;
      activity.visited = true;
      component_.push_back(slot);
      for (std::uint32_t i = 0; i < activity.uses.count; ++i) {
        const std::uint32_t other = activity.uses.items[i].capacity;
        if (capacities_[other].visited) continue;
        capacities_[other].visited = true;
        component_capacities_.push_back(other);
      }
    }
  }
}

double Sharing::full_level(const Capacity& capacity) const {
  // Rounding may make the difference or the demand slightly negative.
  const double left = std::max(0.0, capacity.amount - capacity.used);
  return capacity.demand > 0 ? left / capacity.demand : std::numeric_limits<double>::infinity();
}

/// Progressive filling of a component. The speed of an activity is level × weight until it is
/// settled.
void Sharing::fill() {
  for (const std::uint32_t id : component_capacities_) {
    Capacity& capacity = capacities_[id];
    capacity.used = 0;
    capacity.demand = 0;
    capacity.open = static_cast<std::uint32_t>(capacity.users.size());
    capacity.plain = capacity.parts > 0;
    capacity.level = kNotFull;
    capacity.equals = 0;
  }
  for (const Slot slot : component_) {
    const Activity& activity = activities_[slot];
    for (std::uint32_t i = 0; i < activity.uses.count; ++i) {
      const Use& use = activity.uses.items[i];
      Capacity& capacity = capacities_[use.capacity];
      capacity.demand += use.amount * activity.weight;
      capacity.plain = capacity.plain && use.amount == 1 && activity.weight == 1;
    }
  }
  new_speeds_.assign(component_.size(), {});
  open_.resize(component_.size());
  for (std::uint32_t i = 0; i < component_.size(); ++i) open_[i] = i;

  while (!open_.empty()) {
    double level = std::numeric_limits<double>::infinity();
    for (const std::uint32_t i : open_) {
      level = std::min(level, 1 / activities_[component_[i]].weight);
    }
    for (const std::uint32_t id : component_capacities_) {
      if (capacities_[id].open > 0) level = std::min(level, full_level(capacities_[id]));
    }
    settle_level(level);
  }
}

/// Settles every open activity that stops at this level, because of full speed or a full capacity.
void Sharing::settle_level(double level) {
  const double same_level = level * kSameLevel;
  for (const std::uint32_t id : component_capacities_) {
    Capacity& capacity = capacities_[id];
    capacity.full = capacity.open > 0 && full_level(capacity) <= same_level;
    if (!capacity.full) continue;
    capacity.level = level;
    if (capacity.plain) capacity.equals = std::uint64_t{capacity.parts} * capacity.open;
  }
  std::size_t kept = 0;
  settled_.clear();
  for (const std::uint32_t i : open_) {
    const Activity& activity = activities_[component_[i]];
    if (1 / activity.weight <= same_level) {
      new_speeds_[i] = {1, 1};
      settled_.push_back(i);
      continue;
    }
    bool stops = false;
    const double units = level * activity.weight * kWhole + kAlmost;
    Speed speed{std::max<std::uint64_t>(1, static_cast<std::uint64_t>(units)), kWhole};
    for (std::uint32_t use = 0; use < activity.uses.count; ++use) {
      const Capacity& capacity = capacities_[activity.uses.items[use].capacity];
      if (!capacity.full) continue;
      stops = true;
      if (capacity.plain) speed = {1, capacity.equals};
    }
    if (stops) {
      new_speeds_[i] = speed;
      settled_.push_back(i);
    } else {
      open_[kept++] = i;
    }
  }
  open_.resize(kept);
  for (const std::uint32_t i : settled_) charge(i, level);
}

/// Moves a settled activity's share from the demand of its capacities to their use.
void Sharing::charge(std::uint32_t i, double level) {
  Activity& activity = activities_[component_[i]];
  set_level(activity, std::min(level, 1 / activity.weight));
  const double speed = std::min(1.0, level * activity.weight);
  for (std::uint32_t use = 0; use < activity.uses.count; ++use) {
    Capacity& capacity = capacities_[activity.uses.items[use].capacity];
    capacity.used += activity.uses.items[use].amount * speed;
    capacity.demand -= activity.uses.items[use].amount * activity.weight;
    capacity.plain = false;
    if (--capacity.open == 0) capacity.demand = 0;
  }
}

void Sharing::keep_shares() {
  for (std::size_t i = 0; i < component_.size(); ++i) {
    Activity& activity = activities_[component_[i]];
    activity.visited = false;
    if (activity.share == new_speeds_[i]) continue;
    activity.share = new_speeds_[i];
    touched_.push_back(component_[i]);
  }
}

/// Gives an activity its new speed, if it has changed, and credits the work done at the old one.
void Sharing::apply(Slot slot, std::int64_t now, EventQueue& events) {
  constexpr std::uint64_t kNotSlowed = 1 << 24;
  Activity& activity = activities_[slot];
  Speed speed = activity.share;
  const std::uint64_t slowed = nodes_.empty() ? kNotSlowed : slowdown(activity.place);
  if (slowed != kNotSlowed) speed = {speed.numerator * kNotSlowed, speed.denominator * slowed};
  if (activity.speed == speed) return;
  const SignedWide done =
      SignedWide{now - activity.updated} * activity.speed.numerator / activity.speed.denominator;
  activity.remaining -= static_cast<std::int64_t>(std::min(done, SignedWide{activity.remaining}));
  activity.updated = now;
  activity.speed = speed;
  ++activity.version;
  const SignedWide left =
      (SignedWide{activity.remaining} * speed.denominator + speed.numerator - 1) / speed.numerator;
  const std::int64_t end = left > kNever - now ? kNever : now + static_cast<std::int64_t>(left);
  events.push(end, slot, activity.version);
}

}  // namespace hipress::sim
