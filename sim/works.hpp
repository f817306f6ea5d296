#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "casync/task_graph.hpp"
#include "costs/cluster.hpp"
#include "sim/task_costs.hpp"

namespace hipress::sim {

/// Throws io::InputError that says which task takes so long, in a cluster of so many nodes.
[[noreturn]] void report_too_long(const casync::Task& task, std::uint32_t nodes, double seconds);

/// What each task takes alone on its resource, in picoseconds: the costs of the engine, and of
/// simulations without a graph (planner/timing). Throws io::InputError, as report_too_long(), for a
/// task that takes longer than kLongest_s.
class Works {
 public:
  /// `divisor` is the graph's. The arguments must outlive it.
  Works(const TaskCosts& costs, const costs::Cluster& cluster, std::uint32_t divisor);

  /// A task on a node of that compute speed; a Send along that path. `factors` as of codec().
  std::int64_t of(const casync::Task& task, costs::Path path, double speed,
                  std::span<const casync::Factor> factors = {}) const;

  /// Of a Send: o + bytes/B, for which it occupies both its ports.
  std::int64_t message(const casync::Task& send, costs::Path path) const {
    const auto bytes = static_cast<double>(send.amount);
    return on(path).overhead + checked(send, bytes / on(path).link.bandwidth);
  }
  /// From the end of a Send until its Recv is done: L, on the wire.
  std::int64_t latency(costs::Path path) const { return on(path).latency; }
  /// The same over a slow link.
  std::int64_t slow_message(const casync::Task& send, std::uint32_t place) const {
    const costs::LinkCosts link = costs::slow_link_costs(cluster_, place);
    return checked(send, link.overhead_s) +
           checked(send, static_cast<double>(send.amount) / link.bandwidth);
  }
  std::int64_t slow_latency(std::uint32_t place) const {
    return casync::from_seconds(costs::slow_link_costs(cluster_, place).latency_s).count();
  }
  /// Of an AllReduce, all that the library does.
  std::int64_t all_reduce(const casync::Task& task) const {
    return costs_
        .all_reduce_time(task, cluster_.nodes, ring_, cluster_.gpus_per_node, ranks_per_core_)
        .count();
  }
  /// Of an Encode, Decode or Merge at speed 1; `factors` are TaskGraph::factors_of() it.
  std::int64_t codec(const casync::Task& task, std::span<const casync::Factor> factors = {}) const {
    return costs_.codec_time(task, divisor_, cluster_.gpus_per_node, factors).count();
  }
  /// Bytes that an Encode, Decode or Merge reads and writes; 0: not known, as where there are
  /// factors.
  double memory_bytes(const casync::Task& task) const { return costs_.memory_bytes(task); }
  /// Of a Forward or Backward at speed 1.
  std::int64_t computation(const casync::Task& task) const;
  /// Of a LocalReduce or LocalBroadcast.
  std::int64_t local(const casync::Task& task) const {
    return checked(task, costs::local_s(cluster_, task.amount));
  }
  /// How the nodes of a task's group send to each other.
  static costs::Pattern pattern_of(const casync::Task& task) {
    return task.kind == casync::Kind::kAllToAll ? costs::Pattern::kExchange : costs::Pattern::kRing;
  }
  /// Of an AllGather, ReduceScatter or AllToAll of so many nodes.
  struct OfGroup {
    std::int64_t on_link = 0;  ///< while no other may use the link
    std::int64_t latency = 0;  ///< from then until its end
  };
  OfGroup of_group(const casync::Task& task, std::uint32_t nodes,
                   const costs::LinkCosts& link) const {
    const std::int64_t all = costs_.group_time(task, nodes, link, ranks_per_core_).count();
    // L, each time that a message is waited for; a library that was measured may take less.
    // Over hosts of a machine, only steps to the next host wait for L.
    const double steps = link.span.hosts > 0 ? link.span.hosts - 1.0 : nodes - 1.0;
    const double waits = task.kind == casync::Kind::kAllToAll ? std::min(1.0, steps) : steps;
    const std::int64_t latency =
        std::min(all, casync::from_seconds(waits * link.latency_s).count());
    return {all - latency, latency};
  }
  /// Lower bound of a transfer's time under any jitter: its bytes at the rate of `link`. The bytes
  /// of a collective depend on `nodes`.
  std::int64_t wire(const casync::Task& task, std::uint32_t nodes,
                    const costs::LinkCosts& link) const;
  /// Of a task that takes `nominal` at speed 1.
  std::int64_t at_speed(const casync::Task& task, std::int64_t nominal, double speed) const;

  /// Seconds of a task, in picoseconds.
  std::int64_t checked(const casync::Task& task, double seconds) const {
    if (!(seconds >= 0 && seconds <= kLongest_s)) report_too_long(task, cluster_.nodes, seconds);
    return casync::from_seconds(seconds).count();
  }

  const costs::LinkCosts& link(costs::Path path) const { return on(path).link; }
  /// The one that all-reduces are costed by.
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
  std::array<OnPath, costs::kPaths> paths_;  // those that the cluster has
  costs::LinkCosts ring_;
  double ranks_per_core_;
};

}  // namespace hipress::sim
