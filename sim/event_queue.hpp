#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace hipress::sim {

/// Something that ends at a point of virtual time: a task, or (with a version) an activity of
/// Sharing. An activity's end moves when its speed changes; an event is stale if its version is no
/// longer the activity's.
struct Event {
  std::int64_t time = 0;  ///< picoseconds, not negative
  std::uint32_t subject = 0;
  std::uint32_t version = 0;  ///< 0: the task `subject` ends; the engine has two more for tasks
};

/// Events in the order of time. The order among equal times does not affect the result, since the
/// engine takes all events of an instant before it starts anything. Time never goes back: an event
/// that is pushed is not before the last event taken.
///
/// Many events share an instant (rings move in step), so the heap holds instants, each with a list
/// of its events. A pushed event finds its instant among the last few that were pushed to; if it
/// does not, the same time gets a second instant, which changes nothing.
class EventQueue {
 public:
  EventQueue() { recent_.fill({kNever, kNone}); }

  bool empty() const { return current_ == kNone && heap_.empty(); }
  std::int64_t next_time() const { return current_ != kNone ? now_ : heap_.front().time; }

  /// An Event's members one by one: to load at once what a caller has just stored by parts costs a
  /// dozen cycles.
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
  static constexpr std::size_t kWays = 4;  // children of a heap's element: 64 bytes of them

  struct Node {
    std::uint32_t subject;
    std::uint32_t version;
    std::uint32_t next;
  };
  struct Instant {
    std::int64_t time;
    std::uint32_t first;  // of its list of nodes
  };
  struct Recent {
    std::int64_t time;
    std::uint32_t first;  // of its list, which stays the first
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

  std::int64_t now_ = kNever;      // of the last event taken
  std::uint32_t current_ = kNone;  // events of now_ that are still to be taken
  std::uint32_t free_ = kNone;
  std::vector<Node> nodes_;
  std::vector<Instant> heap_;
  std::array<Recent, 64> recent_;
};

}  // namespace hipress::sim
