#pragma once

#include <vector>

#include "sim/engine.hpp"

namespace hipress::sim {

/// One message at a time per port. The head of an egress queue, and it alone, is offered to its
/// receiver's ingress; an ingress that is free takes the first of its offers, and both ports are
/// busy for o + bytes/B.
template <class Sends>
class PortNetwork {
 public:
  explicit PortNetwork(Core& core)
      : core_(core), egress_(core.graph.orbits()), ingress_(core.graph.orbits()) {}

  void add(TaskId send) {
    const Task& task = core_.graph[send];
    const std::uint32_t node = core_.graph.orbit(task.node);
    egress_[node].waiting.add(task, send, core_.now, core_.sorter);
    touch(egress_[node], node, touched_egress_);
  }

  void finish(TaskId send) {
    const Task& task = core_.graph[send];
    const std::uint32_t sender = core_.graph.orbit(task.node);
    release(egress_[sender], sender, touched_egress_);
    const std::uint32_t receiver = core_.receiver(task);
    release(ingress_[receiver], receiver, touched_ingress_);
  }

  void dispatch() {
    for (const std::uint32_t node : touched_egress_) {
      Egress& port = egress_[node];
      port.touched = false;
      if (port.busy || port.waiting.empty()) continue;
      port.busy = true;  // with its head, which waits for the other port from here on
      const Waiting head = port.waiting.take_first(core_.graph, core_.sorter);
      const std::uint32_t receiver = core_.receiver(core_.graph[head.id]);
      ingress_[receiver].waiting.add(head);
      touch(ingress_[receiver], receiver, touched_ingress_);
    }
    touched_egress_.clear();
    for (const std::uint32_t node : touched_ingress_) {
      Ingress& port = ingress_[node];
      port.touched = false;
      if (port.busy || port.waiting.empty()) continue;
      port.busy = true;
      start(port.waiting.take_first().id);
    }
    touched_ingress_.clear();
  }

  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const Egress& port : egress_) sum += sizeof port + port.waiting.bytes();
    for (const Ingress& port : ingress_) sum += sizeof port + port.waiting.bytes();
    return sum;
  }

 private:
  template <class Tasks>
  struct Port {
    Tasks waiting;
    bool busy = false;
    bool touched = false;
  };
  using Egress = Port<Sends>;
  using Ingress = Port<WaitingHeap>;  // heads come in any order of their ready times

  template <class AnyPort>
  static void touch(AnyPort& port, std::uint32_t node, std::vector<std::uint32_t>& touched) {
    if (port.touched) return;
    port.touched = true;
    touched.push_back(node);
  }
  template <class AnyPort>
  static void release(AnyPort& port, std::uint32_t node, std::vector<std::uint32_t>& touched) {
    port.busy = false;
    touch(port, node, touched);
  }
  void start(TaskId send) {
    const Task& task = core_.graph[send];
    const std::int64_t work = core_.message_work(task);
    Sharing::Uses uses;
    if (core_.shared_cores) core_.add_core_uses(task, work, uses);
    core_.start(send, core_.jittered(send, work), core_.flow_weight, uses);
  }

  Core& core_;
  std::vector<Egress> egress_;
  std::vector<Ingress> ingress_;
  std::vector<std::uint32_t> touched_egress_, touched_ingress_;
};

}  // namespace hipress::sim
