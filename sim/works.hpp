#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "casync/task_graph.hpp"
#include "costs/cluster.hpp"
#include "sim/task_costs.hpp"

namespace hipress::sim {

/// Throws io::InputError that names the task and its time, in a cluster of `nodes` nodes.
[[noreturn]] void report_too_long(const casync::Task& task, std::uint32_t nodes, double seconds);

/// Work of each task, its time alone on its resource in picoseconds. The engine uses it, and the
/// planner's simulations without a graph (planner/timing). Throws io::InputError, as
/// report_too_long() does, for a task that takes longer than kLongest_s.
class Works {
 public:
  /// `divisor` is that of the graph. `costs` and `cluster` must outlive this object.
  Works(const TaskCosts& costs, const costs::Cluster& cluster, std::uint32_t divisor);

  /// Work of a task: on a node of compute speed `speed`; of a Send on `path`. `factors`: see
  /// codec().
  std::int64_t of(const casync::Task& task, costs::Path path, double speed,
                  std::span<const casync::Factor> factors = {}) const;

  /// Work of a Send: o + bytes/B, for which it occupies both its ports.
  std::int64_t message(const casync::Task& send, costs::Path path) const {
    const auto bytes = static_cast<double>(send.amount);
    return on(path).overhead + checked(send, bytes / on(path).link.bandwidth);
  }
  /// Latency L: time from the end of a Send to the end of its Recv.
  std::int64_t latency(costs::Path path) const { return on(path).latency; }
  /// Work of a Send over slow link number `place`.
  std::int64_t slow_message(const casync::Task& send, std::uint32_t place) const {
    const costs::LinkCosts link = costs::slow_link_costs(cluster_, place);
    return checked(send, link.overhead_s) +
           checked(send, static_cast<double>(send.amount) / link.bandwidth);
  }
  std::int64_t slow_latency(std::uint32_t place) const {
    return casync::from_seconds(costs::slow_link_costs(cluster_, place).latency_s).count();
  }
  /// Work of an AllReduce: the library's whole time.
  std::int64_t all_reduce(const casync::Task& task) const {
    return costs_
        .all_reduce_time(task, cluster_.nodes, ring_, cluster_.gpus_per_node, ranks_per_core_)
        .count();
  }
  /// Work of an Encode, Decode or Merge at speed 1; `factors` are TaskGraph::factors_of(task).
  std::int64_t codec(const casync::Task& task, std::span<const casync::Factor> factors = {}) const {
    return costs_.codec_time(task, divisor_, cluster_.gpus_per_node, factors).count();
  }
  /// Lower bound on memory traffic of an Encode, Decode or Merge, bytes; 0 if unknown, as for
  /// factors.
  double memory_bytes(const casync::Task& task) const { return costs_.memory_bytes(task); }
  /// Work of a Forward or Backward at speed 1.
  std::int64_t computation(const casync::Task& task) const;
  /// Work of a LocalReduce or LocalBroadcast.
  std::int64_t local(const casync::Task& task) const {
    return checked(task, costs::local_s(cluster_, task.amount));
  }
  /// Pattern in which the nodes of a task's group send to each other.
  static costs::Pattern pattern_of(const casync::Task& task) {
    return task.kind == casync::Kind::kAllToAll ? costs::Pattern::kExchange : costs::Pattern::kRing;
  }
  /// Work of an AllGather, ReduceScatter or AllToAll.
  struct OfGroup {
    std::int64_t on_link = 0;  ///< exclusive use of the link
    std::int64_t latency = 0;  ///< time from the end of that use to the end of the collective
  };
  OfGroup of_group(const casync::Task& task, std::uint32_t nodes,
                   const costs::LinkCosts& link) const {
    const std::int64_t all = costs_.group_time(task, nodes, link, ranks_per_core_).count();
    // Latency: L for each message that a node waits for, at most the library's measured time. On
    // hosts of a machine, only the steps to the next host wait for L.
    const double steps = link.span.hosts > 0 ? link.span.hosts - 1.0 : nodes - 1.0;
    const double waits = task.kind == casync::Kind::kAllToAll ? std::min(1.0, steps) : steps;
    const std::int64_t latency =
        std::min(all, casync::from_seconds(waits * link.latency_s).count());
    return {all - latency, latency};
  }
  /// Shares of a collective's duration during which its bytes keep the ports of a machine's hosts
  /// busy, over `nodes` nodes.
  costs::PortShares port_shares(const casync::Task& task, std::uint32_t nodes,
                                const costs::LinkCosts& link) const {
    return costs_.port_shares(task, nodes, link);
  }
  /// Lower bound on a transfer's time under any jitter: its bytes at the rate of `link`. The bytes
  /// of a collective depend on `nodes`.
  std::int64_t wire(const casync::Task& task, std::uint32_t nodes,
                    const costs::LinkCosts& link) const;
  /// Converts a task's work at compute speed 1, `nominal`, to its work at speed `speed`.
  std::int64_t at_speed(const casync::Task& task, std::int64_t nominal, double speed) const;

  /// Converts a task's time to picoseconds. Throws as report_too_long() does.
  std::int64_t checked(const casync::Task& task, double seconds) const {
    if (!(seconds >= 0 && seconds <= kLongest_s)) report_too_long(task, cluster_.nodes, seconds);
    return casync::from_seconds(seconds).count();
  }

  const costs::LinkCosts& link(costs::Path path) const { return on(path).link; }
  /// Link that determines the time of all-reduces.
  const costs::LinkCosts& ring() const { return ring_; }

 private:
  struct OnPath {
    costs::LinkCosts link;
    std::int64_t overhead = 0;  // o
    std::int64_t latency = 0;   // L
  };
  void add(costs::Path path);
  const OnPath& on(costs::Path path) const { return paths_[static_cast<std::size_t>(path)]; }

  const TaskCosts& costs_;
  const costs::Cluster& cluster_;
  std::uint32_t divisor_;
  std::array<OnPath, costs::kPaths> paths_;  // set for paths that the cluster has
  costs::LinkCosts ring_;
  double ranks_per_core_;
};

}  // namespace hipress::sim
