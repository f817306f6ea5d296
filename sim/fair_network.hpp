#pragma once

#include <unordered_map>
#include <vector>

#include "sim/burst.hpp"
#include "sim/engine.hpp"

namespace hipress::sim {

/// Flows share links max-min. A flow is one (source, destination) pair: its messages go one after
/// the other, in the order of service, and the flow in front of each link's others only by its
/// share of the link. Links are full duplex; where both directions together carry less than twice
/// one of them, each node has one more capacity for their sum. Ports that have idled let a burst
/// through.
class FairNetwork {
 public:
  explicit FairNetwork(Core& core);

  void add(TaskId send) {
    const std::uint32_t index = flow_of(core_.graph[send]);
    flows_[index].waiting.add(send, core_.order);
    touch(index);
  }

  void finish(TaskId send) {
    const std::uint32_t index = flow_of(core_.graph[send]);
    flows_[index].busy = false;
    touch(index);
  }

  void dispatch() {
    for (const std::uint32_t index : touched_) {
      Flow& flow = flows_[index];
      flow.touched = false;
      if (flow.busy || flow.waiting.empty()) continue;
      flow.busy = true;
      start(flow.waiting.take_first(core_.order));
    }
    touched_.clear();
  }

 private:
  struct Flow {
    WaitingTasks waiting;
    bool busy = false;
    bool touched = false;
  };

  std::uint32_t flow_of(const Task& send);
  void touch(std::uint32_t index) {
    if (flows_[index].touched) return;
    flows_[index].touched = true;
    touched_.push_back(index);
  }
  std::int64_t time_alone(const Task& send, std::uint32_t receiver);
  void start(TaskId send);

  Core& core_;
  std::vector<std::uint32_t> egress_, ingress_, duplex_;    // capacities, per node
  Bursts bursts_;                                           // egresses, then ingresses
  std::unordered_map<std::uint64_t, std::uint32_t> index_;  // (node, rotation) -> flow
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> touched_;
};

}  // namespace hipress::sim
