#include "sim/fair_network.hpp"

#include <algorithm>
#include <limits>

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
  const costs::LinkCosts of_card = costs::card_link(cluster);
  const std::uint32_t last = cluster.cards.nodes > 0
                                 ? costs::card_of(cluster, cluster.nodes - 1)
                                 : *std::max_element(cluster.host.begin(), cluster.host.end());
  for (std::uint32_t link = 0; cluster.host_link && link <= last; ++link) {
    hosts_.push_back(add_link(of_card));
  }
  racks_below_ = costs::racks_below(cluster);
  for (std::size_t level = 0; level < cluster.racks.size(); ++level) {
    const double amount = costs::rack_bandwidth(cluster, level) / of_card.bandwidth;
    for (std::uint32_t rack = racks_below_[level]; rack < racks_below_[level + 1]; ++rack) {
      const std::uint32_t up = core.sharing.add_capacity(amount);
      racks_.push_back({.out = up, .in = core.sharing.add_capacity(amount)});
    }
  }
}

FairLinks::Link FairLinks::add_link(const costs::LinkCosts& link) {
  Link added;
  added.out = core_.sharing.add_capacity(1);
  added.in = core_.sharing.add_capacity(1);
  double both_ways = 2 * link.bandwidth_both_ways / link.bandwidth;
  added.full_duplex = both_ways >= 2;
  // In a folded graph, a message that leaves the node also enters it, but is counted once.
  if (core_.graph.folded) both_ways /= 2;
  if (!added.full_duplex) added.both = core_.sharing.add_capacity(both_ways);
  return added;
}

const FairLinks::Link& FairLinks::link_of(std::uint32_t node, Path path) const {
  return hosts_.empty() || path == Path::kWithinHost ? nodes_[node]
                                                     : hosts_[costs::card_of(core_.cluster, node)];
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
  use_racks(sender, receiver, costs::levels_of(path), use, uses);
}

void FairLinks::use_racks(std::uint32_t from, std::uint32_t to, std::size_t levels, double use,
                          Sharing::Uses& uses) const {
  const costs::Cluster& cluster = core_.cluster;
  for (std::size_t level = 0; level < levels; ++level) {
    const std::uint32_t hosts = cluster.racks[level].hosts, first = racks_below_[level];
    uses.add(racks_[first + cluster.host[from] / hosts].out, use);
    uses.add(racks_[first + cluster.host[to] / hosts].in, use);
  }
}

double FairLinks::use_ports(const Task& task, Sharing::Uses& uses) const {
  const costs::Cluster& cluster = core_.cluster;
  const costs::LinkCosts& ring = core_.works.ring();
  const auto [within, between] = core_.works.port_shares(task, cluster.nodes, ring);
  if (within <= 0 && between <= 0) return 0;
  const std::uint32_t node = core_.graph.representative(task.node);
  const auto both = [&](const Link& link, double use) {
    if (use <= 0) return;
    uses.add(link.out, use);
    uses.add(link.in, use);
  };
  if (hosts_.empty()) {
    both(nodes_[node], std::max(within, between));
    return 1 / std::max(within, between);
  }
  both(nodes_[node], within);
  const double each = costs::nodes_per_host(cluster);
  const double sharing = cluster.cards.nodes > 0 ? cluster.cards.nodes : each;
  both(hosts_[costs::card_of(cluster, node)], between / sharing);
  // A ring leaves a rack once, for all of its nodes.
  const std::size_t levels = between > 0 ? cluster.racks.size() : 0;
  for (std::size_t level = 0; level < levels; ++level) {
    if (racks_below_[level + 1] - racks_below_[level] == 1) break;
    const double nodes = each * cluster.racks[level].hosts;
    const double rate = ring.span.host_bandwidth / costs::card_link(cluster).bandwidth;
    both(racks_[racks_below_[level] + cluster.host[node] / cluster.racks[level].hosts],
         between * rate / nodes);
  }
  return 1 / std::max(within, between);
}

/// Time of a message that runs alone: o + bytes/B, less the part that the ports' bursts cover, but
/// at least the time that a core at each end needs. For all-reduces, the library's time.
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
  // An all-reduce's slowest step sets the pace of all its steps.
  const bool collective = task.kind == casync::Kind::kAllReduce;
  Sharing::Uses uses;
  if (const double weight = collective && core_.cluster.of_machine ? use_ports(task, uses) : 0;
      weight > 0) {
    return core_.start(send, core_.jittered(send, work),
                       core_.add_core_uses(task, path, work, weight, uses), uses);
  }
  const auto slow = collective ? std::nullopt : core_.slow_link_of(task);
  const bool paced = collective && (core_.hierarchical || !core_.cluster.slow_links.empty());
  const double bandwidth = core_.works.link(path).bandwidth;
  // A library's rings use all cards of a host, so their rate may exceed one card's.
  const double most = core_.cluster.cards.nodes > 0 ? 1 : std::numeric_limits<double>::infinity();
  const double pace = paced  ? std::min(most, core_.works.ring().bandwidth / bandwidth)
                      : slow ? costs::slow_link_costs(core_.cluster, *slow).bandwidth / bandwidth
                             : 1;
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
