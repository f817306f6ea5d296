#pragma once

#include "casync/partition.hpp"
#include "casync/topology.hpp"

namespace hipress::casync {

/// A mean in two halves, each an operation of its own. After a reduce-scatter one node, the owner,
/// has the sum of a partition. After a gather all nodes have the owner's values. Each half handles
/// one partition of a unit. Owners are indices among the unit's nodes.
struct Halves {
  /// Sums the nodes' slices on the owner; returns the task after which its slice holds the sum. The
  /// sum is divided by N if `divides`, and always if `partial_sums` travel in half precision.
  TaskId (*reduce)(PartitionTasks& tasks, const UnitWork& work, std::int64_t owner, bool divides);
  /// Brings the owner's slice, which is complete after `ready`, to the other nodes. If it is
  /// compressed, an Encode with these flags makes the message that travels. The owner decodes this
  /// message, too, so that all nodes end with the same bits.
  void (*gather)(PartitionTasks& tasks, std::int64_t owner, TaskId ready, TaskFlags flags);
  bool partial_sums = false;
  bool rings = false;  ///< partitions enter a host at its nodes in turn (UnitWork::rails)
};

/// Topology::expand of the three operations that halves make up. In a mean, partition k is owned by
/// node `first_owner` + k; in the others by node k, whose shard it is. In a group with a stride, k
/// counts only the partitions that the group's nodes have in common.
void expand_mean(GraphBuilder& builder, const UnitWork& work, const Halves& halves,
                 std::int64_t first_owner);
void expand_reduce_scatter(GraphBuilder& builder, const UnitWork& work, const Halves& halves);
void expand_gather(GraphBuilder& builder, const UnitWork& work, const Halves& halves);

}  // namespace hipress::casync
