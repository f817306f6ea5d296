#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "casync/task_graph.hpp"

namespace hipress::sim {

using casync::Task;
using casync::TaskGraph;
using casync::TaskId;

/// The order in which every resource serves waiting tasks: ready time, gradient, rotation,
/// partition, kind, id.
class ServiceOrder {
 public:
  explicit ServiceOrder(const TaskGraph& graph) : graph_(graph), ready_(graph.tasks(), 0) {}

  void set_ready(TaskId id, std::int64_t time) { ready_[id] = time; }
  bool before(TaskId a, TaskId b) const {
    if (ready_[a] != ready_[b]) return ready_[a] < ready_[b];
    const Task& x = graph_[a];
    const Task& y = graph_[b];
    return std::tie(x.gradient, x.rotation, x.partition, x.kind, a) <
           std::tie(y.gradient, y.rotation, y.partition, y.kind, b);
  }

 private:
  const TaskGraph& graph_;
  std::vector<std::int64_t> ready_;  // picoseconds
};

/// Tasks that wait for one resource, first served first.
class WaitingTasks {
  static auto after(const ServiceOrder& order) {
    return [&order](TaskId a, TaskId b) { return order.before(b, a); };
  }

 public:
  bool empty() const { return heap_.empty(); }
  TaskId first() const { return heap_.front(); }
  void add(TaskId id, const ServiceOrder& order) {
    heap_.push_back(id);
    if (heap_.size() > 1) std::push_heap(heap_.begin(), heap_.end(), after(order));
  }
  TaskId take_first(const ServiceOrder& order) {
    if (heap_.size() > 1) std::pop_heap(heap_.begin(), heap_.end(), after(order));
    const TaskId id = heap_.back();
    heap_.pop_back();
    return id;
  }

 private:
  std::vector<TaskId> heap_;
};

}  // namespace hipress::sim
