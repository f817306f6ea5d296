#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/waiting.hpp"

namespace hipress::sim {

/// Rule of network `port`: one message at a time per port. A free egress takes the first message of
/// its queue and holds it until it has left. A held message waits for its receiver's ingress. A
/// free ingress takes the first message held for it: the message starts, and occupies both its
/// ports until it has left.
///
/// Two loops follow this rule: PortNetwork under the engine, for any graph and cluster; and the
/// planner's PatternSimulator (planner/timing/pattern_simulator.hpp), whose state is a value to
/// copy, compare and continue. They share this rule, the costs (works.hpp) and the order of service
/// (service_order.hpp), but not queues and events.
///
/// A port type has `busy`, `touched` and empty().
class PortRule {
 public:
  explicit PortRule(std::size_t nodes = 0) : egress_(nodes), ingress_(nodes) {}
  void resize(std::size_t nodes) {
    egress_.resize(nodes);
    ingress_.resize(nodes);
  }

  /// A message has joined the queue of a node's egress.
  template <class Port>
  void joined_egress(Port& port, std::uint32_t node) {
    if (!port.busy) egress_.add(port, node);
  }
  /// A message is held for a node's ingress.
  template <class Port>
  void joined_ingress(Port& port, std::uint32_t node) {
    if (!port.busy) ingress_.add(port, node);
  }
  /// A message has left both its ports.
  template <class Egress, class Ingress>
  void left(Egress& egress, std::uint32_t sender, Ingress& ingress, std::uint32_t receiver) {
    egress.busy = ingress.busy = false;
    if (!egress.empty()) egress_.add(egress, sender);
    if (!ingress.empty()) ingress_.add(ingress, receiver);
  }
  /// Starts messages on all free ports, at the end of an instant or of a round. hold(egress, node)
  /// takes the first message of the egress's queue, holds it for its ingress and calls
  /// joined_ingress(). start(ingress, node) starts the first message that is held for the ingress.
  template <class Egress, class Ingress, class Hold, class Start>
  void serve(Egress* egress, Ingress* ingress, const Hold& hold, const Start& start) {
    for (const std::uint32_t node : egress_.indices()) {
      egress[node].touched = false;
      egress[node].busy = true;
      hold(egress[node], node);
    }
    egress_.clear();
    for (const std::uint32_t node : ingress_.indices()) {
      ingress[node].touched = false;
      ingress[node].busy = true;
      start(ingress[node], node);
    }
    ingress_.clear();
  }

 private:
  Touched egress_, ingress_;
};

}  // namespace hipress::sim
