#pragma once

#include "casync/partition.hpp"
#include "casync/topology.hpp"

namespace hipress::casync {

/// The two halves of a mean. Each function handles one partition of a unit. After a reduce-scatter
/// one node, the partition's owner, has its sum. After a gather all nodes have the owner's values.
/// An owner is an index among the unit's nodes.
struct Halves {
  /// Sums the nodes' slices on the owner; returns the task after which its slice holds the sum. The
  /// sum is divided by N if `divides` is set. It is divided anyway if partial sums travel in half
  /// precision.
  TaskId (*reduce)(PartitionTasks& tasks, const UnitWork& work, std::int64_t owner, bool divides);
  /// Sends the owner's slice, which is complete after `ready`, to the other nodes. If the unit is
  /// compressed, the owner encodes the slice first, with these flags. It also decodes the message
  /// itself, so that all nodes end with the same bits.
  void (*gather)(PartitionTasks& tasks, std::int64_t owner, TaskId ready, TaskFlags flags);
  bool partial_sums = false;  ///< nodes pass on sums of some nodes' slices, as in a ring
  bool rings = false;  ///< successive partitions enter a host at different nodes (UnitWork::rails)
};

/// Implementations of Topology::expand for a mean, a reduce-scatter and a gather. Partition k is
/// owned by node `first_owner` + k in a mean, and otherwise by node k, whose shard it is. In a
/// group with a stride, k counts only the partitions that the group's nodes have in common.
void expand_mean(GraphBuilder& builder, const UnitWork& work, const Halves& halves,
                 std::int64_t first_owner);
void expand_reduce_scatter(GraphBuilder& builder, const UnitWork& work, const Halves& halves);
void expand_gather(GraphBuilder& builder, const UnitWork& work, const Halves& halves);

}  // namespace hipress::casync
