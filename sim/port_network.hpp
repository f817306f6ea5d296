#pragma once

#include <vector>

#include "sim/engine.hpp"

namespace hipress::sim {

/// One message at a time per port. The head of an egress queue, and it alone, is offered to its
/// receiver's ingress; an ingress that is free takes the first of its offers, and both ports are
/// busy for o + bytes/B.
class PortNetwork {
 public:
  explicit PortNetwork(Core& core)
      : core_(core), egress_(core.graph.orbits()), ingress_(core.graph.orbits()) {}

  void add(TaskId send) {
    const std::uint32_t node = core_.graph.orbit(core_.graph[send].node);
    egress_[node].waiting.add(send, core_.order);
    touch(egress_[node], node, touched_egress_);
  }

  void finish(TaskId send) {
    const Task& task = core_.graph[send];
    const std::uint32_t sender = core_.graph.orbit(task.node);
    release(egress_[sender], sender, touched_egress_);
    const std::uint32_t receiver = core_.graph.orbit(core_.graph.peer(task));
    release(ingress_[receiver], receiver, touched_ingress_);
  }

  void dispatch() {
    for (const std::uint32_t node : touched_egress_) {
      Port& port = egress_[node];
      port.touched = false;
      if (port.busy || port.waiting.empty()) continue;
      port.busy = true;  // with its head, which waits for the other port from here on
      const TaskId head = port.waiting.take_first(core_.order);
      const std::uint32_t receiver = core_.graph.orbit(core_.graph.peer(core_.graph[head]));
      ingress_[receiver].waiting.add(head, core_.order);
      touch(ingress_[receiver], receiver, touched_ingress_);
    }
    touched_egress_.clear();
    for (const std::uint32_t node : touched_ingress_) {
      Port& port = ingress_[node];
      port.touched = false;
      if (port.busy || port.waiting.empty()) continue;
      port.busy = true;
      start(port.waiting.take_first(core_.order));
    }
    touched_ingress_.clear();
  }

 private:
  struct Port {
    WaitingTasks waiting;
    bool busy = false;
    bool touched = false;
  };

  static void touch(Port& port, std::uint32_t node, std::vector<std::uint32_t>& touched) {
    if (port.touched) return;
    port.touched = true;
    touched.push_back(node);
  }
  static void release(Port& port, std::uint32_t node, std::vector<std::uint32_t>& touched) {
    port.busy = false;
    touch(port, node, touched);
  }
  void start(TaskId send) {
    const Task& task = core_.graph[send];
    const std::int64_t work = core_.message_work(task);
    Sharing::Uses uses;
    if (core_.shared_cores) core_.add_core_uses(task, work, uses);
    core_.start(send, work, core_.flow_weight, uses);
  }

  Core& core_;
  std::vector<Port> egress_, ingress_;
  std::vector<std::uint32_t> touched_egress_, touched_ingress_;
};

}  // namespace hipress::sim
