#include "sim/turns.hpp"

#include <algorithm>

#include "casync/task_graph.hpp"

namespace hipress::sim {

Turns::Turns(const costs::Cluster& cluster)
    : turn_s_(cluster.cores_per_host > 0 ? cluster.core_turn_s : 0),
      cores_(cluster.cores_per_host),
      host_(cluster.host) {
  if (!matter()) return;
  busy_.assign(*std::ranges::max_element(host_) + 1, 0);
  granted_.assign(2 * host_.size(), -1);
}

std::int64_t Turns::take(std::uint32_t node, End end, std::int64_t now) {
  std::int64_t& granted = granted_[2 * node + (end == End::kReceiving ? 1 : 0)];
  if (granted > now) return granted;
  const double threads_per_core = busy_[host_[node]] / cores_;
  granted = now;
  if (threads_per_core >= 1) {
    const int waits = end == End::kReceiving ? 2 : 1;
    granted += casync::from_seconds(waits * turn_s_ * (threads_per_core - 0.5)).count();
  }
  return granted;
}

}  // namespace hipress::sim
