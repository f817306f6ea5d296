#include "sim/fair_network.hpp"

namespace hipress::sim {

FairLinks::FairLinks(Core& core)
    : core_(core),
      bursts_(2 * core.graph.orbits(),
              casync::from_seconds(static_cast<double>(core.cluster.link.burst_bytes) /
                                   core.cluster.link.bandwidth)
                  .count()) {
  const costs::LinkCosts& link = core.cluster.link;
  double both_ways = 2 * link.bandwidth_both_ways / link.bandwidth;
  const bool full_duplex = both_ways >= 2;
  // Folded, a message that leaves a node also enters it, and is counted once.
  if (core.graph.folded) both_ways /= 2;
  for (std::uint32_t node = 0; node < core.graph.orbits(); ++node) {
    egress_.push_back(core.sharing.add_capacity(1));
    ingress_.push_back(core.sharing.add_capacity(1));
    if (!full_duplex) duplex_.push_back(core.sharing.add_capacity(both_ways));
  }
}

/// o + bytes/B, less what the ports' bursts take over; that goes as fast as a core at each end
/// moves it. A library's all-reduce takes what was measured.
std::int64_t FairLinks::time_alone(const Task& send) {
  const std::int64_t work = core_.message_work(send);
  if (core_.cluster.link.burst_bytes == 0 || send.kind != casync::Kind::kSend) return work;
  const std::uint32_t ingress = core_.graph.orbits() + core_.receiver(send);
  const std::int64_t granted = bursts_.take(core_.graph.orbit(send.node), ingress, work, core_.now);
  const std::int64_t fastest =
      core_.shared_cores ? casync::from_seconds(core_.core_s(send) / 2).count() : 0;
  return std::max(work - granted, std::min(work, fastest));
}

void FairLinks::start(TaskId send) {
  const Task& task = core_.graph[send];
  const std::uint32_t sender = core_.graph.orbit(task.node);
  const std::uint32_t receiver = core_.receiver(task);
  const std::int64_t work = time_alone(task);
  Sharing::Uses uses;
  uses.add(egress_[sender], 1);
  uses.add(ingress_[receiver], 1);
  if (!duplex_.empty()) {
    const bool counted_once = core_.graph.folded;
    uses.add(duplex_[sender], receiver == sender && !counted_once ? 2 : 1);
    if (receiver != sender) uses.add(duplex_[receiver], 1);
  }
  if (core_.shared_cores) core_.add_core_uses(task, work, uses);
  core_.start(send, core_.jittered(send, work), core_.flow_weight, uses);
}

}  // namespace hipress::sim
