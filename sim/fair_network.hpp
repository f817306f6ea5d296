#pragma once

#include <unordered_map>
#include <vector>

#include "sim/burst.hpp"
#include "sim/engine.hpp"

namespace hipress::sim {

/// The nodes' links as capacities of Sharing. Ports that have idled let a burst through.
class FairLinks {
 public:
  explicit FairLinks(Core& core);
  /// Starts a message now; it shares the links of its path.
  void start(TaskId send);

 private:
  std::int64_t time_alone(const Task& send);

  Core& core_;
  std::vector<std::uint32_t> egress_, ingress_, duplex_;  // capacities, per node
  Bursts bursts_;                                         // egresses, then ingresses
};

/// Flows share links max-min. A flow is one (source, destination) pair: its messages go one after
/// the other, in the order of service, and the flow in front of each link's others only by its
/// share of the link. Links are full duplex; where both directions together carry less than twice
/// one of them, each node has one more capacity for their sum.
template <class Sends>
class FairNetwork {
 public:
  explicit FairNetwork(Core& core) : core_(core), links_(core) {}

  void add(TaskId send) {
    const Task& task = core_.graph[send];
    const std::uint32_t index = flow_of(task);
    flows_[index].waiting.add(task, send, core_.now, core_.sorter);
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
      links_.start(flow.waiting.take_first(core_.graph, core_.sorter).id);
    }
    touched_.clear();
  }

  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const Flow& flow : flows_) sum += sizeof flow + flow.waiting.bytes();
    return sum;
  }

 private:
  struct Flow {
    Sends waiting;
    bool busy = false;
    bool touched = false;
  };

  std::uint32_t flow_of(const Task& send) {
    const std::uint64_t key = (std::uint64_t{core_.graph.orbit(send.node)} << 32) | send.rotation;
    const auto [entry, added] = index_.try_emplace(key, static_cast<std::uint32_t>(flows_.size()));
    if (added) flows_.emplace_back();
    return entry->second;
  }
  void touch(std::uint32_t index) {
    if (flows_[index].touched) return;
    flows_[index].touched = true;
    touched_.push_back(index);
  }

  Core& core_;
  FairLinks links_;
  std::unordered_map<std::uint64_t, std::uint32_t> index_;  // (node, rotation) -> flow
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> touched_;
};

}  // namespace hipress::sim
