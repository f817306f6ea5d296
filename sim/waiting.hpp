#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "casync/task_graph.hpp"
#include "sim/service_order.hpp"

namespace hipress::sim {

using casync::Task;
using casync::TaskGraph;
using casync::TaskId;

/// A waiting task's place in the order of service.
struct Waiting {
  ServiceKey key;
  PlaceInUnit place;
  TaskId id() const { return place.id(); }
  auto operator<=>(const Waiting&) const = default;
};

inline Waiting place_by_ready(const Task& task, TaskId id, std::int64_t ready) {
  return {key_by_ready(ready, task.gradient), place_in_unit(task, id)};
}

inline Waiting place_by_need(const TaskGraph& graph, TaskId id, std::int64_t ready) {
  const Task& send = graph[id];
  return {key_by_need(ready, graph.need(send)), place_in_unit(send, id)};
}

/// A task and the time at which it became ready.
struct Ready {
  Ready(std::int64_t ready_time, TaskId task) : time(ready_time), id(task) {}
  std::int64_t time;
  TaskId id;
};

/// Priority queue of tasks that wait for one resource, in the order of service; added in any order.
class WaitingHeap {
 public:
  bool empty() const { return heap_.empty(); }
  void add(const Waiting& task) {
    heap_.push_back(task);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  Waiting take_first() {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const Waiting first = heap_.back();
    heap_.pop_back();
    return first;
  }
  std::size_t bytes() const { return heap_.capacity() * sizeof(Waiting); }

 private:
  std::vector<Waiting> heap_;
};

/// Queue in the order of key_by_ready(). Tasks must be added in order of ready time, as streams
/// add them. Only tasks of the same ready time need sorting, and only when the first of them is
/// taken or a task with a later ready time is added. A single waiting task needs no queue.
class WaitingQueue {
 public:
  /// Sorts tasks of the same ready time. All queues of a graph share one Sorter.
  class Sorter {
   public:
    explicit Sorter(const TaskGraph& graph) : graph_(graph) {}
    void sort(Ready* begin, Ready* end);
    bool before(const Ready& a, const Ready& b) const { return place(a) < place(b); }
    void prefetch(const Ready& task) const { __builtin_prefetch(&graph_[task.id]); }

   private:
    Waiting place(const Ready& task) const {
      return place_by_ready(graph_[task.id], task.id, task.time);
    }
    const TaskGraph& graph_;
    std::vector<Waiting> places_;
  };

  bool empty() const { return size_ == 0; }

  void add(TaskId id, std::int64_t now, Sorter& sorter) {
    ++size_;
    if (size_ == 1) {
      alone_ = {now, id};
    } else {
      append(now, id, sorter);
    }
  }

  Ready take_first(Sorter& sorter) {
    --size_;
    if (size_ > 0) return take_from_queue(sorter);
    if (tasks_.empty()) return alone_;
    const Ready last = tasks_.back();
    tasks_.clear();
    next_ = sorted_ = 0;
    return last;
  }

  std::size_t bytes() const { return tasks_.capacity() * sizeof(Ready); }

 private:
  void append(std::int64_t time, TaskId id, Sorter& sorter) {
    if (tasks_.empty()) tasks_.push_back(alone_);
    if (sorted_ < tasks_.size() && tasks_.back().time != time) sort_latest(sorter);
    if (tasks_.size() == tasks_.capacity() && 2 * std::size_t{next_} > tasks_.size()) drop_taken();
    tasks_.emplace_back(time, id);
  }
  Ready take_from_queue(Sorter& sorter) {
    const bool order_is_open =
        sorted_ < tasks_.size() && (next_ == sorted_ || tasks_[next_].time == tasks_[sorted_].time);
    if (order_is_open) sort_latest(sorter);
    sorter.prefetch(tasks_[next_ + 1]);
    return tasks_[next_++];
  }
  void sort_latest(Sorter& sorter);
  void drop_taken();

  std::uint32_t size_ = 0;    // number of waiting tasks
  std::uint32_t next_ = 0;    // index of the first that still waits
  std::uint32_t sorted_ = 0;  // tasks from this index have one ready time and are unsorted
  Ready alone_{0, 0};         // the waiting task, if the queue is empty
  std::vector<Ready> tasks_;  // in order of ready time
};

/// Waiting Sends in the order of key_by_ready(). SendsByNeed has that of key_by_need() instead.
class SendsByReady {
 public:
  bool empty() const { return queue_.empty(); }
  void add(const TaskGraph&, TaskId id, std::int64_t now, WaitingQueue::Sorter& sorter) {
    queue_.add(id, now, sorter);
  }
  Ready take_first(WaitingQueue::Sorter& sorter) { return queue_.take_first(sorter); }
  std::size_t bytes() const { return queue_.bytes(); }
  static Waiting place(const TaskGraph& graph, const Ready& send) {
    return place_by_ready(graph[send.id], send.id, send.time);
  }

 private:
  WaitingQueue queue_;
};

class SendsByNeed {
 public:
  bool empty() const { return heap_.empty(); }
  void add(const TaskGraph& graph, TaskId id, std::int64_t now, WaitingQueue::Sorter&) {
    heap_.add(place(graph, {now, id}));
  }
  Ready take_first(WaitingQueue::Sorter&) {
    const Waiting first = heap_.take_first();
    return {first.key.second, first.id()};
  }
  std::size_t bytes() const { return heap_.bytes(); }
  static Waiting place(const TaskGraph& graph, const Ready& send) {
    return place_by_need(graph, send.id, send.time);
  }

 private:
  WaitingHeap heap_;
};

/// Sends that are held for one receiver, in the order of service. A single one, the common case, is
/// stored without computing its place in the order.
template <class Sends>
class Offers {
 public:
  bool empty() const { return count_ == 0; }
  void add(const TaskGraph& graph, const Ready& send) {
    if (++count_ == 1) {
      alone_ = send;
      return;
    }
    if (many_.empty()) many_.add(Sends::place(graph, alone_));
    many_.add(Sends::place(graph, send));
  }
  TaskId take_first() {
    --count_;
    return many_.empty() ? alone_.id : many_.take_first().id();
  }
  std::size_t bytes() const { return many_.bytes(); }

 private:
  std::uint32_t count_ = 0;
  Ready alone_{0, 0};  // the only Send, unless it is in the heap
  WaitingHeap many_;
};

/// Set of the resources to examine at the end of the instant.
class Touched {
 public:
  /// `resources` is their number; each must have a member `touched`.
  explicit Touched(std::size_t resources = 0) : indices_(resources) {}
  void resize(std::size_t resources) { indices_.resize(resources); }
  template <class Resource>
  void add(Resource& resource, std::uint32_t index) {
    if (resource.touched) return;
    resource.touched = true;
    indices_[count_++] = index;
  }
  std::span<const std::uint32_t> indices() const { return {indices_.data(), count_}; }
  void clear() { count_ = 0; }

 private:
  std::vector<std::uint32_t> indices_;
  std::size_t count_ = 0;
};

}  // namespace hipress::sim
