#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "casync/task_graph.hpp"
#include "costs/profile.hpp"
#include "sim/event_queue.hpp"

namespace hipress::sim {

/// Activities that share capacities: flows on links, threads on cores.
///
/// An activity has work (picoseconds at full speed) and runs at a speed between 0 and 1. A capacity
/// limits the sum of use × speed over its activities. Speeds are weighted max-min fair (progressive
/// filling, Bertsekas and Gallager, Data Networks, 6.5.2): all speeds rise together, each in
/// proportion to its activity's weight. A speed stops rising at 1, or when one of the activity's
/// capacities is full, while other speeds rise further.
///
/// An activity's *level* is its speed divided by its weight. A full capacity limits the level of
/// its activities. If activities start or end, the levels of their capacities are recomputed; then
/// those of other capacities whose activities changed their speed, until nothing changes. The
/// speeds are then fair. If many levels change, all connected capacities are filled anew. If a new
/// activity takes the place of an ended one, as a flow's next message does, nothing is recomputed.
///
/// Remaining work is an integer. Speeds are ratios of integers: exactly 1/n for n equal activities
/// that share one full capacity, else in units of 2^-32. Ends are rounded up to a picosecond.
class Sharing {
 public:
  using Slot = std::uint32_t;

  /// Latest end of an activity (53 days): after any simulation, and small enough for sums of times.
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 2;

  /// Amount of a capacity that an activity uses at full speed. Members are uninitialised, to spare
  /// every start of a task kMaxUses writes.
  struct Use {
    std::uint32_t capacity;
    double amount;
    bool operator==(const Use&) const = default;
  };
  static constexpr std::size_t kMaxUses = 14;
  struct Uses {
    std::array<Use, kMaxUses> items;
    std::uint32_t count = 0;
    void add(std::uint32_t capacity, double amount) { items[count++] = {capacity, amount}; }
    bool operator==(const Uses& other) const {
      return std::equal(items.begin(), items.begin() + count, other.items.begin(),
                        other.items.begin() + other.count);
    }
  };

  /// Sort and place of an activity, which determine how overlaps slow it. A transfer runs on two
  /// nodes, and the slower end sets its pace.
  enum class Sort : std::uint8_t { kCompute, kCodec, kTransfer };
  struct Place {
    Sort sort;
    std::uint32_t node;
    std::uint32_t other_node;  ///< equal to `node`, except for transfers
  };

  std::uint32_t add_capacity(double amount);
  /// Makes activities of different sorts on one node slow each other: the speed that sharing gives
  /// is divided by the factors (rounded to 1/4096) of the other sorts that run there. The part of a
  /// capacity that this leaves free stays unused.
  void set_overlap(const costs::DirectedFactors& factors, std::uint32_t nodes);

  /// Starts an activity at `now`; `work` is in picoseconds. Its speed is known after the next
  /// settle().
  Slot start(casync::TaskId task, std::int64_t work, double weight, const Uses& uses,
             std::int64_t now, const Place& place = {});
  /// Ends an activity whose event is due. Returns its task.
  casync::TaskId finish(Slot slot);
  bool stale(const Event& event) const {
    return activities_[event.subject].version != event.version;
  }
  /// Recomputes speeds after starts and finishes at `now`. Pushes an event for every changed end.
  void settle(std::int64_t now, EventQueue& events);

 private:
  struct Speed {
    std::uint64_t numerator = 0;
    std::uint64_t denominator = 1;
    bool operator==(const Speed&) const = default;
  };
  struct Activity {
    casync::TaskId task = 0;
    std::int64_t remaining = 0;
    std::int64_t updated = 0;
    Speed share;  // speed that its capacities give
    Speed speed;  // `share`, slowed by overlaps
    Place place = {};
    double weight = 1;
    double level = 0;  // its speed is level × weight, at most full speed
    std::uint32_t version = 0;
    bool visited = false;
    bool moved = false;  // its level, or the capacity that limits it, may have changed
    Uses uses;
    std::array<std::uint32_t, kMaxUses> position;  // its index in Capacity::users, per use
  };
  static constexpr double kNotFull = std::numeric_limits<double>::infinity();
  struct Capacity {
    double amount = 0;
    std::uint32_t parts = 0;  // the amount is 1/parts; 0: 1/amount is not whole
    std::vector<Slot> users;
    bool changed = false;
    bool visited = false;
    double used = 0;    // by activities with settled speeds
    double demand = 0;  // of all other activities, per unit of level
    std::uint32_t open = 0;
    bool plain = true;         // amount is 1/parts, no user settled, uses and weights 1: shares are
                               // exactly 1/(parts × n)
    bool full = false;         // at the level being settled
    double level = kNotFull;   // no user rises above it
    std::uint64_t equals = 0;  // if not 0, all users get exactly 1/equals
    std::int64_t load = 0;     // sum of use × speed, each rounded down, in units of 2^-40
    bool dirty = false;        // its level must be recomputed
    bool is_full() const { return level < kNotFull; }
  };
  /// A user of one capacity; `level` is the level that its other capacities allow.
  struct Limited {
    double level;
    double demand;  // per unit of level
    double most;    // use at that level
  };

  bool adjust();
  bool fill_alone(std::uint32_t id);
  double level_of_limited(double amount, double demand);
  double level_of(const Activity& activity, std::uint32_t but) const;
  void set_level(Activity& activity, double level);
  void move(Slot slot, std::uint32_t because_of);
  void mark_dirty(std::uint32_t capacity);
  static bool may_be_full(const Capacity& capacity);
  Speed share_at_level(const Activity& activity) const;
  void fill_connected();
  void collect(std::uint32_t capacity);
  void fill();
  double full_level(const Capacity& capacity) const;
  void settle_level(double level);
  void charge(std::uint32_t i, double level);
  void keep_shares();
  void apply(Slot slot, std::int64_t now, EventQueue& events);
  void enter(Slot slot, std::uint32_t node);
  void leave(Slot slot, std::uint32_t node);
  std::uint64_t slowdown(const Place& place) const;
  void mark_changed(const Uses& uses);
  bool take_place(Activity& activity);

  /// Share of an activity that has ended since the last settle(). A new activity with the same
  /// weight and uses takes it over, so no other speed changes.
  struct Vacancy {
    Uses uses;
    double weight;
    double level;
    Speed share;
  };
  /// Maximum number of vacancies to search. If more activities end at once, speeds are recomputed.
  static constexpr std::size_t kMaxVacancies = 16;

  /// Activities that run on a node.
  struct Node {
    std::array<std::uint32_t, 3> running{};  // by sort
    std::vector<Slot> activities;
    bool changed = false;  // the sorts that run there have changed
  };

  std::vector<Activity> activities_;
  std::vector<Slot> free_;
  std::vector<Capacity> capacities_;
  std::vector<std::uint32_t> changed_;
  std::vector<Vacancy> vacancies_;
  std::vector<Slot> fresh_;    // started, without uses
  std::vector<Slot> started_;  // started, with uses, not in a vacancy
  std::vector<Slot> touched_;  // share or slowdown may have changed
  std::vector<Node> nodes_;    // empty unless set_overlap()
  std::vector<std::uint32_t> changed_nodes_;
  std::array<std::array<std::uint64_t, 3>, 8> slowdowns_{};  // [sorts that run][sort], in 2^-24
  // Used while levels are adjusted.
  std::vector<std::uint32_t> dirty_;  // capacities
  std::vector<Slot> moved_;
  std::vector<Limited> limited_;  // users of one capacity
  // One connected component while it is recomputed.
  std::vector<Slot> component_;
  std::vector<std::uint32_t> component_capacities_;
  std::vector<Speed> new_speeds_;       // per index into component_
  std::vector<std::uint32_t> open_;     // indices into component_ whose speed is not settled
  std::vector<std::uint32_t> settled_;  // members of open_ that stop at the level being settled
};

}  // namespace hipress::sim
