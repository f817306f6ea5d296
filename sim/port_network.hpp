#pragma once

#include <vector>

#include "sim/engine.hpp"
#include "sim/port_rule.hpp"

namespace hipress::sim {

/// Network `port` (PortRule). `Sends` defines the order of service of messages.
template <class Sends>
class PortNetwork {
 public:
  explicit PortNetwork(Core& core)
      : core_(core),
        egress_(core.graph.representatives()),
        ingress_(core.graph.representatives()),
        rule_(core.graph.representatives()) {}

  void add(TaskId send) {
    const std::uint32_t node = core_.graph.representative(core_.graph[send].node);
    egress_[node].waiting.add(core_.graph, send, core_.now, core_.sorter);
    rule_.joined_egress(egress_[node], node);
  }

  void finish(TaskId send) {
    const Task& task = core_.graph[send];
    const std::uint32_t sender = core_.graph.representative(task.node);
    const std::uint32_t receiver = core_.receiver(task);
    rule_.left(egress_[sender], sender, ingress_[receiver], receiver);
  }

  void dispatch() {
    rule_.serve(
        egress_.data(), ingress_.data(),
        [&](Egress& port, std::uint32_t) {
          const Ready head = port.waiting.take_first(core_.sorter);
          const std::uint32_t receiver = core_.receiver(core_.graph[head.id]);
          ingress_[receiver].waiting.add(core_.graph, head);
          rule_.joined_ingress(ingress_[receiver], receiver);
        },
        [&](Ingress& port, std::uint32_t) { start(port.waiting.take_first()); });
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
    bool empty() const { return waiting.empty(); }
  };
  using Egress = Port<Sends>;
  using Ingress = Port<Offers<Sends>>;

  void start(TaskId send) {
    const Task& task = core_.graph[send];
    const costs::Path path = core_.path_of(task);
    const std::int64_t work = core_.message_work(task, path);
    if (core_.undisturbed) return core_.start_undisturbed(send, core_.jittered(send, work));
    Sharing::Uses uses;
    const double weight =
        core_.add_core_uses(task, path, work, core_.costs_of(path).weight_of(task), uses);
    core_.start(send, core_.jittered(send, work), weight, uses);
  }

  Core& core_;
  std::vector<Egress> egress_;
  std::vector<Ingress> ingress_;
  PortRule rule_;
};

}  // namespace hipress::sim
