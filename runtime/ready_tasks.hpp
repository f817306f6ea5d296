#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "transport/endpoint.hpp"

namespace hipress::runtime {

/// Priority queue of a program's ready tasks, by (ready time, order).
class ReadyTasks {
 public:
  bool empty() const { return heap_.empty(); }
  void reserve(std::size_t tasks) { heap_.reserve(tasks); }
  void push(std::uint32_t index, std::uint32_t order, transport::Clock::time_point ready) {
    heap_.push_back({ready, order, index});
    std::push_heap(heap_.begin(), heap_.end(), served_later);
  }
  /// Removes the first task and returns its index.
  std::uint32_t pop() {
    std::pop_heap(heap_.begin(), heap_.end(), served_later);
    const std::uint32_t index = heap_.back().index;
    heap_.pop_back();
    return index;
  }

 private:
  struct Ready {
    transport::Clock::time_point time;
    std::uint32_t order;
    std::uint32_t index;
  };
  static bool served_later(const Ready& a, const Ready& b) {
    return std::pair(a.time, a.order) > std::pair(b.time, b.order);
  }

  std::vector<Ready> heap_;  // the task to serve first on top
};

}  // namespace hipress::runtime
