#pragma once

#include "casync/partition.hpp"
#include "casync/topology.hpp"

namespace hipress::casync {

/// A mean in two halves, each an operation of its own. After a reduce-scatter one node, the owner,
/// has the sum of a partition. After a gather all nodes have what the owner has. Each half does one
/// partition of a unit; owners are numbered by their places among the unit's nodes.
struct Halves {
  /// Adds up what the nodes have on the owner; the task after which its slice holds the sum.
  /// Divided by N if `divides`, or in any case where `partial_sums` travel in half precision.
  TaskId (*reduce)(PartitionTasks& tasks, const UnitWork& work, std::int64_t owner, bool divides);
  /// Brings the owner's slice, which is complete after `ready`, to the other nodes. If it is
  /// compressed, an Encode with these flags makes the message that travels. The owner decodes this
  /// message, too, so that all nodes end with the same bits.
  void (*gather)(PartitionTasks& tasks, std::int64_t owner, TaskId ready, TaskFlags flags);
  bool partial_sums = false;
};

/// Topology::expand of the three operations. Of a mean, partition k is owned by `first_owner` + k;
/// of the others by k, whose shard it is, or, between nodes that are apart, the k-th of theirs.
void expand_mean(GraphBuilder& builder, const UnitWork& work, const Halves& halves,
                 std::int64_t first_owner);
void expand_reduce_scatter(GraphBuilder& builder, const UnitWork& work, const Halves& halves);
void expand_gather(GraphBuilder& builder, const UnitWork& work, const Halves& halves);

}  // namespace hipress::casync
