#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "planner/timing/pattern.hpp"
#include "sim/port_rule.hpp"
#include "sim/service_order.hpp"
#include "sim/simulator.hpp"

/// The planner's own simulation of network `port`. It works on units and builds no graph, so a
/// candidate costs nothing to put together, and what it shares with another candidate is not
/// simulated again. With whole or folded patterns its times are sim::simulate()'s to the picosecond
/// (tests compare them): sim/port_rule.hpp says what the two loops share.
namespace hipress::planner {

/// A unit at its place in a timeline.
struct PlacedUnit {
  std::int64_t ready = 0;   ///< ps; the end of its last Backward
  std::uint32_t round = 0;  ///< among the Backwards that end at that instant: each ends in a round
                            ///< of events of its own
  std::uint32_t index = 0;  ///< Task::gradient of its tasks
  std::uint32_t need = 0;   ///< TaskGraph::need_places of it
  std::uint32_t carried = 0;  ///< Task::gradient of what travels: itself, or its first factor
  const Pattern* pattern = nullptr;
  /// Per step of the pattern, or null: ps from its start to the iteration's end, at the least. Runs
  /// with a limit end sooner with it.
  const std::int64_t* tails = nullptr;
  bool operator==(const PlacedUnit&) const = default;

  /// The next factor of the graph is its first, if it has some; returns which is next then.
  std::uint32_t take_factors(std::uint32_t next) {
    carried = pattern->factors > 0 ? next : index;
    return next + pattern->factors;
  }
  /// How far its nodes are rotated against the pattern's, by the index of what travels.
  std::uint32_t rotation(std::uint32_t representatives) const {
    return (carried - pattern->carried) % representatives;
  }
  /// Task::gradient of the step's task.
  std::uint32_t gradient_of(const Step& step) const {
    return step.factor == 0 ? index : carried + step.factor - 1;
  }
};

/// All that a simulation depends on.
struct PatternGraph {
  std::vector<PlacedUnit> units;      ///< sorted by (ready, round)
  std::uint32_t representatives = 1;  ///< nodes that the patterns hold: 1, or with whole ones N
  std::int64_t compute_end = 0;       ///< ps: the last Backward's, or Forward's, end
  sim::TransferOrder transfer_order = sim::TransferOrder::kReady;

  /// The representative whose codec stream, link between GPUs or egress the step takes.
  std::uint32_t node_of(const PlacedUnit& unit, const Step& step) const {
    return representatives == 1 ? 0
                                : (step.node + unit.rotation(representatives)) % representatives;
  }
  /// The representative whose ingress it takes.
  std::uint32_t receiver_of(const PlacedUnit& unit, const Step& step) const {
    if (representatives == 1) return 0;
    return (step.node + unit.rotation(representatives) + step.shift) % representatives;
  }
};

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// The queues of representative i are at (sort)·representatives + i of a state's.
inline constexpr std::uint32_t kCodecQueue = 0, kLocalQueue = 1, kEgress = 2, kIngress = 3;
inline constexpr std::uint32_t kQueueSorts = 4;

/// A simulation at an instant before a unit was ready.
struct TimelineState {
  struct Event {
    std::int64_t time;
    std::uint32_t unit;
    std::uint32_t step;  ///< with kArrival: its successors may start; else it leaves its resource
    bool operator==(const Event&) const = default;
  };
  /// What will happen, in the order of time, from `next` on.
  struct Events {
    std::vector<Event> all;
    std::size_t next = 0;

    std::int64_t time() const { return next == all.size() ? kNever : all[next].time; }
    void add(const Event& event);
    Event take();
    std::span<const Event> coming() const { return std::span(all).subspan(next); }
    bool operator==(const Events& other) const;
  };
  /// Sorts of events. In a list of its own, what is new mostly comes last: arrivals come as long
  /// after ends as the wire is, and steps of one resource are mostly equally long.
  static constexpr std::size_t kPortEnds = 0, kOtherEnds = 1, kArrivals = 2, kEventSorts = 3;
  /// A waiting step with its place in the order of service.
  struct Entry {
    sim::ServiceKey key;
    std::uint32_t step, unit;
    bool operator==(const Entry&) const = default;
  };
  /// Sorted; served from `next` on.
  struct Queue {
    std::vector<Entry> entries;
    std::size_t next = 0;
    bool busy = false;
    bool touched = false;
    std::int64_t started = 0;  ///< ps of work that has begun so far
    std::int64_t until = 0;    ///< when the last of it ends
    std::int64_t waiting = 0;  ///< ps of work of the entries

    bool empty() const { return next == entries.size(); }
    /// Whether it comes behind all others.
    bool add(const Entry& entry);
    Entry take();
    bool operator==(const Queue& other) const;
  };

  std::int64_t now = -1;     ///< of the last instant that is over
  std::int64_t end = 0;      ///< of what has ended so far
  std::uint32_t next = 0;    ///< the first unit that is not ready
  std::uint32_t oldest = 0;  ///< all units before are done
  std::array<Events, kEventSorts> events;
  std::vector<Queue> queues;         ///< by sort and representative
  std::vector<std::uint16_t> waits;  ///< per step of the units from `oldest` to `next`
  std::vector<std::uint32_t> open;   ///< per unit of these: steps that are not done
  std::int64_t codec_left = 0,
               port_left = 0;  ///< ps of steps that have not started, all representatives
};

/// What was kept of a simulation, so that others can begin, or end, with it.
struct Recording {
  PatternGraph graph;
  std::int64_t iteration = kNever;
  std::vector<TimelineState> states;  ///< in the order of time
};

/// A run is given up as soon as it shows that the iteration ends later than `time`: by
/// PlacedUnit::tails, and by the work that is left on a resource when it starts a step.
struct Deadline {
  std::int64_t time = kNever;  ///< ps
  /// Per queue, by sort and representative, ps: the work there of all units of the iteration, with
  /// those that the graph lacks, and the time that follows it; at the least. Or nothing.
  std::span<const std::int64_t> loads;
};

/// Simulates pattern graphs, one after the other; not to be used by two threads at once.
class PatternSimulator {
 public:
  /// `stop` is asked now and then: true ends a run with sim::Stopped. May be empty.
  explicit PatternSimulator(std::function<bool()> stop = {}) : stop_(std::move(stop)) {}

  /// The iteration's end in ps, or kNever if it would be later than `limit`. With `base`, starts
  /// from its last state before the graphs differ, and ends where it meets one of its states
  /// again; the result is the same without.
  std::int64_t run(const PatternGraph& graph, std::int64_t limit = kNever,
                   const Recording* base = nullptr);

  /// The same, and what others need to begin with it.
  Recording record(const PatternGraph& graph);

  /// Before anything happened.
  static TimelineState beginning(std::uint32_t representatives);
  /// From a state of a graph that begins with the same units, on to just before the instant
  /// `until`, at which the first unit that `graph` does not have any more may be ready. Nothing
  /// if it is given up.
  std::optional<TimelineState> advance(const PatternGraph& graph, const TimelineState& from,
                                       std::int64_t until, const Deadline& deadline = {});
  /// From such a state to the end, as run().
  std::int64_t finish(const PatternGraph& graph, const TimelineState& from,
                      const Deadline& deadline);

  /// Steps that ended in all runs so far.
  std::int64_t steps() const { return steps_; }

 private:
  using Event = TimelineState::Event;
  using Entry = TimelineState::Entry;
  using Queue = TimelineState::Queue;

  /// A unit of the graph, with what its steps need at hand.
  struct Unit {
    const Step* steps = nullptr;
    const std::uint32_t* successors = nullptr;
    const std::int64_t* tails = nullptr;
    std::uint16_t* waits = nullptr;  // per step
    std::uint32_t open = 0;          // steps that are not done
    std::uint32_t rotation = 0;      // its peer_offset, less than the representatives
    std::uint32_t index = 0;
    std::uint32_t carried = 0;
    bool is_collective = false;
  };

  void begin(const PatternGraph& graph, const Recording* base);
  void continue_from(const PatternGraph& graph, const TimelineState& from,
                     const Deadline& deadline);
  void set(const Deadline& deadline);
  void place_units();
  std::int64_t go(std::int64_t limit, const Recording* base, Recording* recording);
  bool instant();
  void release(std::uint32_t unit);
  void place_collectives();
  std::uint32_t step_of_collective(std::size_t which, std::uint32_t node) const;
  void hold_collectives(std::uint32_t unit);
  void end_collective(std::uint32_t unit, std::uint32_t step);
  void take(const Event& event);
  void arrive(std::uint32_t unit, std::uint32_t step);
  void make_ready(std::uint32_t unit, std::uint32_t step);
  void dispatch();
  std::int64_t start(const Entry& entry, std::size_t sort_of_end);
  void occupy(std::uint32_t resource, std::int64_t work);
  void wait(const Entry& entry, Queue& queue);
  std::uint32_t number_of(std::uint32_t kind, std::uint32_t representative) const {
    return kind * graph_->representatives + representative;
  }
  Queue& queue(std::uint32_t kind, std::uint32_t representative) {
    return state_.queues[number_of(kind, representative)];
  }
  std::uint32_t number_of_stream(Resource resource, std::uint32_t representative) const {
    return number_of(resource == Resource::kCodec ? kCodecQueue : kLocalQueue, representative);
  }
  /// PatternGraph::node_of() and receiver_of().
  std::uint32_t node_of(const Unit& unit, const Step& step) const {
    return rotated(step.node + unit.rotation);
  }
  std::uint32_t receiver_of(const Unit& unit, const Step& step) const {
    return rotated(rotated(step.node + step.shift) + unit.rotation);
  }
  std::uint32_t rotated(std::uint32_t representative) const {
    return representative < graph_->representatives ? representative
                                                    : representative - graph_->representatives;
  }
  TimelineState snapshot() const;
  void restore(const TimelineState& state);
  bool meets(const TimelineState& other, const PatternGraph& graph) const;
  std::int64_t next_time() const;

  const PatternGraph* graph_ = nullptr;
  TimelineState state_;  // its `waits` and `open` are kept in those below
  std::vector<Unit> units_;
  std::vector<std::size_t> offset_;  // per unit: of its first step in waits_
  std::vector<std::uint16_t> waits_;
  /// One all-reduce of a unit, on every node.
  struct Collective {
    std::uint32_t unit = 0, stage = 0;
  };
  std::vector<Collective> collectives_;  // in the order in which nodes run them
  /// Per unit and stage, which of them it is: first_collective_[unit] + stage has the place.
  std::vector<std::uint32_t> first_collective_, place_of_collective_;
  sim::Touched touched_streams_;  // numbers of queues
  sim::PortRule port_rule_;
  std::int64_t now_ = 0;
  std::uint32_t round_ = 0;       // of the instant now_
  std::int64_t latest_ = kNever;  // that an iteration may end
  /// Per queue: a step that starts when it has been idle for longer is too late.
  std::vector<std::int64_t> most_idle_;
  bool too_late_ = false;
  std::int64_t steps_ = 0;
  std::function<bool()> stop_;
  std::uint32_t instants_ = 0;
};

}  // namespace hipress::planner
