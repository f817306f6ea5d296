#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace hipress::sim {

/// End of a task, or of an activity of Sharing, in virtual time. If an activity's speed changes, it
/// gets a new version and a new event; events with an older version are stale.
struct Event {
  std::int64_t time = 0;  ///< picoseconds, not negative
  std::uint32_t subject = 0;
  std::uint32_t version = 0;  ///< 0: task `subject` ends; the four highest versions: see
                              ///< EventEngine::kArrives
};

/// Queue of events in order of time. The order among equal times does not affect the result, since
/// the engine takes all events of an instant before it starts any task. A pushed event must not be
/// earlier than the last event taken.
///
/// Many events share an instant (rings move in step), so the heap holds instants, each with a list
/// of its events. A small cache finds the instant of a pushed event. On a miss the same time gets a
/// second instant, which is harmless.
class EventQueue {
 public:
  EventQueue() { recent_.fill({kNever, kNone}); }

  bool empty() const { return current_ == kNone && heap_.empty(); }
  std::int64_t next_time() const { return current_ != kNone ? now_ : heap_.front().time; }

  /// Takes an Event's members one by one: loading a whole Event right after storing its parts costs
  /// a dozen cycles.
  void push(std::int64_t time, std::uint32_t subject, std::uint32_t version) {
    const std::uint32_t node = new_node(subject, version);
    if (time == now_) {
      nodes_[node].next = current_;
      current_ = node;
      return;
    }
    Recent& recent = recent_of(time);
    if (recent.time == time) {
      nodes_[node].next = nodes_[recent.first].next;
      nodes_[recent.first].next = node;
    } else {
      recent = {time, node};
      push_instant({time, node});
    }
  }

  Event pop() {
    if (current_ == kNone) begin_instant();
    const std::uint32_t taken = current_;
    const Node& node = nodes_[taken];
    const Event event{now_, node.subject, node.version};
    current_ = node.next;
    nodes_[taken].next = free_;
    free_ = taken;
    return event;
  }

  std::size_t bytes() const {
    return nodes_.capacity() * sizeof(Node) + heap_.capacity() * sizeof(Instant);
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::int64_t kNever = -1;
  static constexpr std::size_t kWays = 4;  // children of a heap element; 64 bytes together

  struct Node {
    std::uint32_t subject;
    std::uint32_t version;
    std::uint32_t next;
  };
  struct Instant {
    std::int64_t time;
    std::uint32_t first;  // head of its list of nodes
  };
  struct Recent {
    std::int64_t time;
    std::uint32_t first;  // head of its list; it stays the head
  };

  Recent& recent_of(std::int64_t time) {
    return recent_[(static_cast<std::uint64_t>(time) * 0x9e3779b97f4a7c15u) >> 58];
  }

  std::uint32_t new_node(std::uint32_t subject, std::uint32_t version) {
    if (free_ == kNone) {
      nodes_.push_back({subject, version, kNone});
      return static_cast<std::uint32_t>(nodes_.size() - 1);
    }
    const std::uint32_t node = free_;
    free_ = nodes_[node].next;
    nodes_[node] = {subject, version, kNone};
    return node;
  }

  void begin_instant() {
    now_ = heap_.front().time;
    current_ = heap_.front().first;
    pop_instant();
    Recent& recent = recent_of(now_);
    if (recent.time == now_) recent.time = kNever;
  }

  void push_instant(const Instant& instant) {
    std::size_t at = heap_.size();
    heap_.push_back(instant);
    while (at > 0) {
      const std::size_t parent = (at - 1) / kWays;
      if (heap_[parent].time <= instant.time) break;
      heap_[at] = heap_[parent];
      at = parent;
    }
    heap_[at] = instant;
  }

  void pop_instant() {
    const Instant moved = heap_.back();
    heap_.pop_back();
    const std::size_t size = heap_.size();
    if (size == 0) return;
    std::size_t at = 0;
    while (true) {
      const std::size_t first = kWays * at + 1;
      if (first >= size) break;
      std::size_t least = first;
      const std::size_t end = first + kWays < size ? first + kWays : size;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (heap_[child].time < heap_[least].time) least = child;
      }
      if (moved.time <= heap_[least].time) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = moved;
  }

  std::int64_t now_ = kNever;      // time of the last event taken
  std::uint32_t current_ = kNone;  // remaining events of now_
  std::uint32_t free_ = kNone;
  std::vector<Node> nodes_;
  std::vector<Instant> heap_;
  std::array<Recent, 64> recent_;
};

}  // namespace hipress::sim
