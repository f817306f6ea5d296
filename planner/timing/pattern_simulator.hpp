#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "planner/timing/pattern.hpp"
#include "sim/port_rule.hpp"
#include "sim/service_order.hpp"
#include "sim/simulator.hpp"

/// The planner's own simulation of network `port`. It works on patterns instead of a graph, so a
/// candidate costs nothing to assemble. Parts of the timeline that are known from another candidate
/// are not simulated again. With whole or folded patterns its times equal sim::simulate()'s to the
/// picosecond (tests compare them); sim/port_rule.hpp holds the rules that both simulators share.
namespace hipress::planner {

/// A unit placed in a timeline.
struct PlacedUnit {
  std::int64_t ready = 0;  ///< ps; the end of its last Backward
  /// Position among the Backwards that end at `ready`, each of which has a round of events.
  std::uint32_t round = 0;
  std::uint32_t index = 0;  ///< Task::gradient of its tasks
  std::uint32_t need = 0;   ///< its TaskGraph::need_places
  /// Task::gradient of its messages: `index`, or the index of its first factor.
  std::uint32_t carried = 0;
  const Pattern* pattern = nullptr;
  bool operator==(const PlacedUnit&) const = default;

  /// If the unit has factors, gives them indices that start at `next`. Returns the next free index.
  std::uint32_t take_factors(std::uint32_t next) {
    carried = pattern->factors > 0 ? next : index;
    return next + pattern->factors;
  }
  /// Number of places by which the unit's nodes are rotated relative to the pattern's. It is the
  /// difference of their `carried` indices, since the index determines which nodes serve.
  std::uint32_t rotation(std::uint32_t representatives) const {
    return (carried - pattern->carried) % representatives;
  }
};

/// Complete input of a simulation.
struct PatternGraph {
  std::vector<PlacedUnit> units;      ///< sorted by `ready`, then `round`
  std::uint32_t representatives = 1;  ///< number of nodes in the patterns: 1, or N if whole
  std::int64_t compute_end = 0;       ///< ps; end of the last Backward or Forward
  sim::TransferOrder transfer_order = sim::TransferOrder::kReady;
};

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// Kinds of queues. Every representative has one queue of each kind; representative i has
/// TimelineState::queues[kind * representatives + i].
inline constexpr std::uint32_t kCodecQueue = 0, kLocalQueue = 1, kEgress = 2, kIngress = 3;
inline constexpr std::uint32_t kQueueSorts = 4;

/// State of a simulation just before an instant at which a unit becomes ready.
struct TimelineState {
  struct Event {
    std::int64_t time;
    std::uint32_t unit;
    /// Step of the event, with or without bit kArrival. With it, the step's successors may start;
    /// without it, the step leaves its resource.
    std::uint32_t step;
    bool operator==(const Event&) const = default;
  };
  /// Pending events, sorted by time; the earliest is at `next`.
  struct Events {
    std::vector<Event> all;
    std::size_t next = 0;

    std::int64_t time() const { return next == all.size() ? kNever : all[next].time; }
    void add(const Event& event);
    Event take();
    std::span<const Event> coming() const { return std::span(all).subspan(next); }
    bool operator==(const Events& other) const;
  };
  /// Kinds of events, each with its own list. New events mostly belong at a list's end, since
  /// arrivals follow ends by a constant wire time, and a resource's steps take about equally long.
  static constexpr std::size_t kPortEnds = 0, kOtherEnds = 1, kArrivals = 2, kEventSorts = 3;
  /// A waiting step with its place in the order of service.
  struct Entry {
    sim::ServiceKey key;
    std::uint32_t step, unit;
    bool operator==(const Entry&) const = default;
  };
  /// Sorted queue; the first entry to serve is at `next`.
  struct Queue {
    std::vector<Entry> entries;
    std::size_t next = 0;
    bool busy = false;
    bool touched = false;

    bool empty() const { return next == entries.size(); }
    /// Inserts the entry in order.
    void add(const Entry& entry);
    Entry take();
    bool operator==(const Queue& other) const;
  };

  std::int64_t now = -1;     ///< ps; last completed instant
  std::int64_t end = 0;      ///< ps; latest end so far
  std::uint32_t next = 0;    ///< first unit that is not ready
  std::uint32_t oldest = 0;  ///< all units before it are complete
  std::array<Events, kEventSorts> events;
  std::vector<Queue> queues;  ///< by kind and representative
  /// Number of predecessors that are not complete, per step of units `oldest` to `next`.
  std::vector<std::uint16_t> waits;
  /// Number of steps that are not complete, per unit `oldest` to `next`.
  std::vector<std::uint32_t> open;
  std::int64_t codec_left = 0,
               port_left = 0;  ///< ps of the steps not started, over all representatives
};

/// A simulated graph, its result, and some of its states. PatternSimulator::run() of a similar
/// graph may start from one of the states, and end when it reaches one again.
struct Recording {
  PatternGraph graph;
  std::int64_t iteration = kNever;
  std::vector<TimelineState> states;  ///< in the order of time
};

/// Simulates pattern graphs, one after the other. Not thread-safe.
class PatternSimulator {
 public:
  /// `stop` is polled: true ends a run with sim::Stopped. May be empty.
  explicit PatternSimulator(std::function<bool()> stop = {}) : stop_(std::move(stop)) {}

  /// End of the iteration in ps, or kNever if later than `limit`. With `base`, starts from the last
  /// of its states before the graphs differ, and stops early if it reaches one of its later states.
  /// The result is the same.
  std::int64_t run(const PatternGraph& graph, std::int64_t limit = kNever,
                   const Recording* base = nullptr);

  /// Simulates and records states, for use as `base`.
  Recording record(const PatternGraph& graph);

  /// Number of steps that ended in all runs so far.
  std::int64_t steps() const { return steps_; }

 private:
  using Event = TimelineState::Event;
  using Entry = TimelineState::Entry;
  using Queue = TimelineState::Queue;

  /// A unit of the graph, with pointers to its pattern's arrays.
  struct Unit {
    const Step* steps = nullptr;
    const std::uint32_t* successors = nullptr;
    std::uint16_t* waits = nullptr;  // by step
    std::uint32_t open = 0;          // number of steps that are not complete
    std::uint32_t rotation = 0;      // its rotation, less than the number of representatives
    std::uint32_t index = 0;
    std::uint32_t carried = 0;
    bool is_collective = false;
  };

  void begin(const PatternGraph& graph, const Recording* base);
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
  void start(const Entry& entry, std::size_t sort_of_end);
  std::uint32_t number_of(std::uint32_t kind, std::uint32_t representative) const {
    return kind * graph_->representatives + representative;
  }
  Queue& queue(std::uint32_t kind, std::uint32_t representative) {
    return state_.queues[number_of(kind, representative)];
  }
  std::uint32_t number_of_stream(Resource resource, std::uint32_t representative) const {
    return number_of(resource == Resource::kCodec ? kCodecQueue : kLocalQueue, representative);
  }
  /// Representative whose codec stream, GPU link or egress the step occupies.
  std::uint32_t node_of(const Unit& unit, const Step& step) const {
    return rotated(step.node + unit.rotation);
  }
  /// Representative whose ingress the step occupies.
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
  TimelineState state_;  // without `waits` and `open`, which are members below
  std::vector<Unit> units_;
  std::vector<std::size_t> offset_;  // by unit: offset of its first step in waits_
  std::vector<std::uint16_t> waits_;
  /// An all-reduce of a unit, on every node.
  struct Collective {
    std::uint32_t unit = 0, stage = 0;
  };
  std::vector<Collective> collectives_;  // in the order in which nodes run them
  /// By unit and stage: place_of_collective_[first_collective_[unit] + stage] in collectives_.
  std::vector<std::uint32_t> first_collective_, place_of_collective_;
  sim::Touched touched_streams_;  // by number of the queue
  sim::PortRule port_rule_;
  std::int64_t now_ = 0;
  std::uint32_t round_ = 0;  // round within the instant now_
  std::int64_t steps_ = 0;
  std::function<bool()> stop_;
  std::uint32_t instants_ = 0;
};

}  // namespace hipress::planner
