#include "sim/fair_network.hpp"

namespace hipress::sim {

FairNetwork::FairNetwork(Core& core)
    : core_(core),
      bursts_(2 * core.graph.nodes,
              casync::from_seconds(static_cast<double>(core.cluster.link.burst_bytes) /
                                   core.cluster.link.bandwidth)
                  .count()) {
  const costs::LinkCosts& link = core.cluster.link;
  const double both_ways = 2 * link.bandwidth_both_ways / link.bandwidth;
  for (std::uint32_t node = 0; node < core.graph.nodes; ++node) {
    egress_.push_back(core.sharing.add_capacity(1));
    ingress_.push_back(core.sharing.add_capacity(1));
    if (both_ways < 2) duplex_.push_back(core.sharing.add_capacity(both_ways));
  }
}

std::uint32_t FairNetwork::flow_of(const Task& send) {
  const std::uint64_t key = (std::uint64_t{send.node} << 32) | send.rotation;
  const auto [entry, added] = index_.try_emplace(key, static_cast<std::uint32_t>(flows_.size()));
  if (added) flows_.emplace_back();
  return entry->second;
}

/// o + bytes/B, less what the ports' bursts take over; that goes as fast as a core at each end
/// moves it.
std::int64_t FairNetwork::time_alone(const Task& send, std::uint32_t receiver) {
  const std::int64_t work = core_.message_work(send);
  if (core_.cluster.link.burst_bytes == 0) return work;
  const std::int64_t granted =
      bursts_.take(send.node, core_.graph.nodes + receiver, work, core_.now);
  const std::int64_t fastest =
      core_.shared_cores ? casync::from_seconds(core_.core_s(send) / 2).count() : 0;
  return std::max(work - granted, std::min(work, fastest));
}

void FairNetwork::start(TaskId send) {
  const Task& task = core_.graph[send];
  const std::uint32_t receiver = core_.graph.peer(task);
  const std::int64_t work = time_alone(task, receiver);
  Sharing::Uses uses;
  uses.add(egress_[task.node], 1);
  uses.add(ingress_[receiver], 1);
  if (!duplex_.empty()) {
    uses.add(duplex_[task.node], 1);
    uses.add(duplex_[receiver], 1);
  }
  if (core_.shared_cores) core_.add_core_uses(task, work, uses);
  core_.start(send, work, core_.flow_weight, uses);
}

}  // namespace hipress::sim
