#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <vector>

#include "casync/task_graph.hpp"

namespace hipress::sim {

using casync::Task;
using casync::TaskGraph;
using casync::TaskId;

/// A waiting task with its place in the order of service, which one of the orders below gives it.
struct Waiting {
  std::int64_t first = 0;
  std::uint64_t second = 0;
  std::uint64_t third = 0;
  TaskId id = 0;
  auto operator<=>(const Waiting&) const = default;
};

/// Every resource's usual order: ready time, gradient, rotation, partition, kind, id.
inline Waiting place_by_ready(const Task& task, TaskId id, std::int64_t ready) {
  return {ready, (std::uint64_t{task.gradient} << 32) | task.rotation,
          (std::uint64_t{task.partition} << 32) | static_cast<std::uint64_t>(task.kind), id};
}

/// Sends by how early the next forward pass needs their gradient: backward ends with the first
/// layer's, so the last gradient goes first; among equals the usual order.
inline Waiting place_by_need(const Task& send, TaskId id, std::int64_t ready) {
  return {-std::int64_t{send.gradient}, static_cast<std::uint64_t>(ready),
          (std::uint64_t{send.rotation} << 32) | send.partition, id};
}

/// Tasks that wait for one resource, first served first, in any order of arrival.
class WaitingHeap {
 public:
  bool empty() const { return heap_.empty(); }
  void add(const Waiting& task) {
    heap_.push_back(task);
    if (heap_.size() > 1) std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  Waiting take_first() {
    if (heap_.size() > 1) std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const Waiting first = heap_.back();
    heap_.pop_back();
    return first;
  }
  std::size_t bytes() const { return heap_.capacity() * sizeof(Waiting); }

 private:
  std::vector<Waiting> heap_;
};

/// The same for tasks in the usual order that are added as time goes on, as every stream's are:
/// a queue. Only what became ready at one instant has to be put in order, and only if it is still
/// waiting when that instant's turn comes.
class WaitingQueue {
 public:
  struct Ready {
    std::int64_t time = 0;
    TaskId id = 0;
  };
  /// Puts tasks of one ready time in order; one for all queues of a graph.
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

  bool empty() const { return next_ == tasks_.size(); }

  void add(TaskId id, std::int64_t now, Sorter& sorter) {
    if (sorted_ < tasks_.size() && tasks_.back().time != now) sort_latest(sorter);
    if (tasks_.size() == tasks_.capacity() && 2 * next_ > tasks_.size()) drop_taken();
    tasks_.push_back({now, id});
  }

  Ready take_first(Sorter& sorter) {
    if (next_ + 1 == tasks_.size()) {
      const Ready last = tasks_[next_];
      tasks_.clear();
      next_ = sorted_ = 0;
      return last;
    }
    const bool order_is_open =
        sorted_ < tasks_.size() && (next_ == sorted_ || tasks_[next_].time == tasks_[sorted_].time);
    if (order_is_open) sort_latest(sorter);
    sorter.prefetch(tasks_[next_ + 1]);
    return tasks_[next_++];
  }

  std::size_t bytes() const { return tasks_.capacity() * sizeof(Ready); }

 private:
  void sort_latest(Sorter& sorter);
  void drop_taken();

  std::vector<Ready> tasks_;  // in the order of time
  std::size_t next_ = 0;      // the first that still waits
  std::size_t sorted_ = 0;    // from here on all have one time, in no order yet
};

/// How waiting Sends are kept: in the usual order, or by need. take_first() gives the place that
/// the task has at its receiver.
class SendsByReady {
 public:
  bool empty() const { return queue_.empty(); }
  void add(const Task&, TaskId id, std::int64_t now, WaitingQueue::Sorter& sorter) {
    queue_.add(id, now, sorter);
  }
  Waiting take_first(const TaskGraph& graph, WaitingQueue::Sorter& sorter) {
    const WaitingQueue::Ready first = queue_.take_first(sorter);
    return place_by_ready(graph[first.id], first.id, first.time);
  }
  std::size_t bytes() const { return queue_.bytes(); }

 private:
  WaitingQueue queue_;
};

class SendsByNeed {
 public:
  bool empty() const { return heap_.empty(); }
  void add(const Task& send, TaskId id, std::int64_t now, WaitingQueue::Sorter&) {
    heap_.add(place_by_need(send, id, now));
  }
  Waiting take_first(const TaskGraph&, WaitingQueue::Sorter&) { return heap_.take_first(); }
  std::size_t bytes() const { return heap_.bytes(); }

 private:
  WaitingHeap heap_;
};

}  // namespace hipress::sim
