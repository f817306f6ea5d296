#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hipress::sim {

/// Something that ends at a point of virtual time: a task, or (with a version) an activity of
/// Sharing, whose end moves when its speed changes; an event whose version is no longer the
/// activity's is stale.
struct Event {
  std::int64_t time = 0;  ///< picoseconds
  std::uint32_t subject = 0;
  std::uint32_t version = 0;  ///< 0: subject is a task id
};

/// A binary heap of events. The order among equal times is irrelevant to the result: the engine
/// takes all of an instant before it starts anything.
class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  const Event& top() const { return heap_.front(); }
  void push(const Event& event) {
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }

 private:
  static bool later(const Event& a, const Event& b) { return a.time > b.time; }
  std::vector<Event> heap_;
};

}  // namespace hipress::sim
