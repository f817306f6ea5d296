#include "sim/fair_network.hpp"

#include <algorithm>

namespace hipress::sim {

using costs::Path;

FairLinks::FairLinks(Core& core)
    : core_(core),
      bursts_(2 * core.graph.representatives(),
              casync::from_seconds(static_cast<double>(core.cluster.link.burst_bytes) /
                                   core.cluster.link.bandwidth)
                  .count()) {
  const costs::Cluster& cluster = core.cluster;
  const costs::LinkCosts& of_node = cluster.host_link ? *cluster.host_link : cluster.link;
  for (std::uint32_t node = 0; node < core.graph.representatives(); ++node) {
    nodes_.push_back(add_link(of_node));
  }
  for (std::size_t i = 0; i < cluster.slow_links.size(); ++i) {
    const std::uint32_t one_way = core.sharing.add_capacity(1);
    slow_links_.push_back({.out = one_way, .in = core.sharing.add_capacity(1)});
  }
  if (!core.hierarchical || cluster.host.empty()) return;
  const std::uint32_t hosts = *std::max_element(cluster.host.begin(), cluster.host.end()) + 1;
  for (std::uint32_t host = 0; cluster.host_link && host < hosts; ++host) {
    hosts_.push_back(add_link(cluster.link));
  }
  if (!cluster.rack) return;
  const double amount = costs::rack_bandwidth(cluster) / cluster.link.bandwidth;
  for (std::uint32_t rack = 0; rack <= (hosts - 1) / cluster.rack->hosts; ++rack) {
    const std::uint32_t up = core.sharing.add_capacity(amount);
    racks_.push_back({.out = up, .in = core.sharing.add_capacity(amount)});
  }
}

FairLinks::Link FairLinks::add_link(const costs::LinkCosts& link) {
  Link added;
  added.out = core_.sharing.add_capacity(1);
  added.in = core_.sharing.add_capacity(1);
  double both_ways = 2 * link.bandwidth_both_ways / link.bandwidth;
  added.full_duplex = both_ways >= 2;
  // Folded, a message that leaves a node also enters it, and is counted once.
  if (core_.graph.folded) both_ways /= 2;
  if (!added.full_duplex) added.both = core_.sharing.add_capacity(both_ways);
  return added;
}

const FairLinks::Link& FairLinks::link_of(std::uint32_t node, Path path) const {
  return hosts_.empty() || path == Path::kWithinHost ? nodes_[node]
                                                     : hosts_[core_.cluster.host[node]];
}

void FairLinks::use_links(const Task& send, Path path, double use, Sharing::Uses& uses) const {
  const std::uint32_t sender = core_.graph.representative(send.node);
  const std::uint32_t receiver = core_.receiver(send);
  const Link& from = link_of(sender, path);
  const Link& to = link_of(receiver, path);
  uses.add(from.out, use);
  uses.add(to.in, use);
  if (!from.full_duplex) {
    const bool counted_once = core_.graph.folded;
    uses.add(from.both, &from == &to && !counted_once ? 2 * use : use);
    if (&from != &to) uses.add(to.both, use);
  }
  if (path != Path::kBetweenRacks) return;
  const std::uint32_t hosts = core_.cluster.rack->hosts;
  uses.add(racks_[core_.cluster.host[sender] / hosts].out, use);
  uses.add(racks_[core_.cluster.host[receiver] / hosts].in, use);
}

/// o + bytes/B, less what the ports' bursts take over; that goes as fast as a core at each end
/// moves it. A library's all-reduce takes what was measured.
std::int64_t FairLinks::time_alone(const Task& send, Path path) {
  const std::int64_t work = core_.message_work(send, path);
  if (core_.cluster.link.burst_bytes == 0 || send.kind != casync::Kind::kSend) return work;
  const std::uint32_t ingress = core_.graph.representatives() + core_.receiver(send);
  const std::int64_t granted =
      bursts_.take(core_.graph.representative(send.node), ingress, work, core_.now);
  const std::int64_t fastest =
      core_.shared_cores ? core_.works.checked(send, core_.core_s(send, core_.cluster.link) / 2)
                         : 0;
  return std::max(work - granted, std::min(work, fastest));
}

void FairLinks::start(TaskId send) {
  const Task& task = core_.graph[send];
  const Path path = core_.path_of(task);
  const Core::PathCosts& on = core_.costs_of(path);
  const std::int64_t work = time_alone(task, path);
  // All steps of an all-reduce go at the pace of the slowest.
  const bool collective = task.kind == casync::Kind::kAllReduce;
  const auto slow = collective ? std::nullopt : core_.slow_link_of(task);
  const bool paced = collective && (core_.hierarchical || !core_.cluster.slow_links.empty());
  const double bandwidth = core_.works.link(path).bandwidth;
  const double pace = paced  ? core_.works.ring().bandwidth / bandwidth
                      : slow ? costs::slow_link_costs(core_.cluster, *slow).bandwidth / bandwidth
                             : 1;
  Sharing::Uses uses;
  use_links(task, path, on.use * pace, uses);
  if (slow) {
    const Link& link = slow_links_[*slow];
    const bool forth = core_.cluster.host[task.node] == core_.cluster.slow_links[*slow].a;
    uses.add(forth ? link.out : link.in, 1);
  }
  const double weight = core_.add_core_uses(task, path, work, on.weight_of(task) / pace, uses);
  core_.start(send, core_.jittered(send, work), weight, uses);
}

}  // namespace hipress::sim
