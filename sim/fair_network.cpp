#include "sim/fair_network.hpp"

namespace hipress::sim {

FairLinks::FairLinks(Core& core) : core_(core) {
  const costs::LinkCosts& link = core.cluster.link;
  const double both_ways = 2 * link.bandwidth_both_ways / link.bandwidth;
  for (std::uint32_t node = 0; node < core.graph.nodes; ++node) {
    egress_.push_back(core.sharing.add_capacity(1));
    ingress_.push_back(core.sharing.add_capacity(1));
    if (both_ways < 2) duplex_.push_back(core.sharing.add_capacity(both_ways));
  }
}

void FairLinks::start(TaskId send) {
  const Task& task = core_.graph[send];
  const std::uint32_t receiver = core_.receiver(task);
  const std::int64_t work = core_.message_work(task);
  Sharing::Uses uses;
  uses.add(egress_[task.node], 1);
  uses.add(ingress_[receiver], 1);
  if (!duplex_.empty() && receiver == task.node) {
    uses.add(duplex_[task.node], 2);
  } else if (!duplex_.empty()) {
    uses.add(duplex_[task.node], 1);
    uses.add(duplex_[receiver], 1);
  }
  if (core_.shared_cores) core_.add_core_uses(task, work, uses);
  core_.start(send, core_.jittered(send, work), core_.flow_weight, uses);
}

}  // namespace hipress::sim
