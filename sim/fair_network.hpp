#pragma once

#include <unordered_map>
#include <vector>

#include "sim/burst.hpp"
#include "sim/engine.hpp"

namespace hipress::sim {

/// Links of nodes, hosts and racks as capacities of Sharing. Per direction, a node's or host's link
/// has capacity 1, and a rack's has its bandwidth divided by that of a host's link (or of one of
/// its cards). On clusters without hierarchy, idle ports earn burst credit.
class FairLinks {
 public:
  explicit FairLinks(Core& core);
  /// Starts a message now, which shares the links of its path.
  void start(TaskId send);

 private:
  /// Capacities of a link: one per direction, and one for both together if that is less than their
  /// sum.
  struct Link {
    std::uint32_t out = 0, in = 0, both = 0;
    bool full_duplex = true;
  };

  std::int64_t time_alone(const Task& send, costs::Path path);
  Link add_link(const costs::LinkCosts& link);
  const Link& link_of(std::uint32_t node, costs::Path path) const;
  void use_links(const Task& send, costs::Path path, double use, Sharing::Uses& uses) const;
  /// Adds the capacities that an all-reduce uses on hosts of a machine: its node's port into the
  /// fabric, its part of the host's cards, and the links of racks that its ring leaves. Returns its
  /// weight, or 0 if the library is not modelled there.
  double use_ports(const Task& task, Sharing::Uses& uses) const;
  void use_racks(std::uint32_t from, std::uint32_t to, std::size_t levels, double use,
                 Sharing::Uses& uses) const;

  Core& core_;
  std::vector<Link> nodes_;  // Cluster::host_link if set, else Cluster::link
  std::vector<Link> hosts_;  // only with a host link: one per host, or one per card
  std::vector<Link> racks_;  // links of all levels, the lowest first
  std::vector<std::uint32_t> racks_below_;
  std::vector<Link> slow_links_;  // `out`: from the first host to the second
  Bursts bursts_;                 // egresses, then ingresses
};

/// Max-min fair sharing of links by flows. A flow is one (source, destination) pair. Its messages
/// go one after the other, in the order of service. Flows share links, but do not queue for each
/// other. Links are full duplex. If a link carries less in both directions together than twice what
/// it carries in one, it has a third capacity, for the sum.
template <class Sends>
class FairNetwork {
 public:
  explicit FairNetwork(Core& core) : core_(core), links_(core) {}

  void add(TaskId send) {
    const std::uint32_t index = flow_of(core_.graph[send]);
    flows_[index].waiting.add(core_.graph, send, core_.now, core_.sorter);
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
      links_.start(flow.waiting.take_first(core_.sorter).id);
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
    const std::uint64_t key =
        (std::uint64_t{core_.graph.representative(send.node)} << 32) | send.peer_offset;
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
  std::unordered_map<std::uint64_t, std::uint32_t> index_;  // (node, peer_offset) -> flow
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> touched_;
};

}  // namespace hipress::sim
