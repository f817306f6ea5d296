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
      : core_(core),
        egress_(core.graph.representatives()),
        ingress_(core.graph.representatives()),
        touched_egress_(egress_.size()),
        touched_ingress_(ingress_.size()) {}

  void add(TaskId send) {
    const std::uint32_t node = core_.graph.representative(core_.graph[send].node);
    egress_[node].waiting.add(core_.graph, send, core_.now, core_.sorter);
    touched_egress_.add(egress_[node], node);
  }

  void finish(TaskId send) {
    const Task& task = core_.graph[send];
    const std::uint32_t sender = core_.graph.representative(task.node);
    egress_[sender].busy = false;
    touched_egress_.add(egress_[sender], sender);
    const std::uint32_t receiver = core_.receiver(task);
    ingress_[receiver].busy = false;
    touched_ingress_.add(ingress_[receiver], receiver);
  }

  void dispatch() {
    for (const std::uint32_t node : touched_egress_.indices()) {
      Egress& port = egress_[node];
      port.touched = false;
      if (port.busy || port.waiting.empty()) continue;
      port.busy = true;  // with its head, which waits for the other port from here on
      const Ready head = port.waiting.take_first(core_.sorter);
      const std::uint32_t receiver = core_.receiver(core_.graph[head.id]);
      ingress_[receiver].waiting.add(core_.graph, head);
      touched_ingress_.add(ingress_[receiver], receiver);
    }
    touched_egress_.clear();
    for (const std::uint32_t node : touched_ingress_.indices()) {
      Ingress& port = ingress_[node];
      port.touched = false;
      if (port.busy || port.waiting.empty()) continue;
      port.busy = true;
      start(port.waiting.take_first());
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
  using Ingress = Port<Offers<Sends>>;

  void start(TaskId send) {
    const Task& task = core_.graph[send];
    const costs::Path path = core_.path_of(task);
    const Core::PathCosts& on = core_.costs_of(path);
    const std::int64_t work = core_.message_work(task, path);
    Sharing::Uses uses;
    if (core_.shared_cores) core_.add_core_uses(task, on.link, work, uses);
    core_.start(send, core_.jittered(send, work), on.weight_of(task), uses);
  }

  Core& core_;
  std::vector<Egress> egress_;
  std::vector<Ingress> ingress_;
  Touched touched_egress_, touched_ingress_;
};

}  // namespace hipress::sim
