#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "casync/graph_builder.hpp"
#include "casync/topology.hpp"

namespace hipress::casync {

/// Distance between partitions to expand: 1, or N in a folded graph. There, each expanded partition
/// stands for N successive ones: the tasks of the others are the same, but on other nodes.
inline std::int64_t partition_step(const GraphBuilder& builder) {
  return builder.folded() ? builder.nodes() : 1;
}

/// Adds the tasks of one partition, in the terms of a topology's description: encode, transfer,
/// add, decode. Every function also adds the edges from the predecessors, and returns its last task
/// unless noted.
class PartitionTasks {
 public:
  PartitionTasks(GraphBuilder& builder, const UnitWork& work, std::int64_t partition);

  bool empty() const { return slice_.elements == 0; }
  bool compressed() const { return work_.algorithm != nullptr; }
  /// True if contributions are divided by N before they are added, to keep partial sums in the
  /// range of half precision.
  bool divide_first() const {
    return compressed() && work_.algorithm->half_precision && !work_.divided;
  }
  std::uint32_t nodes() const { return ranks_.nodes; }  ///< N: the number of the unit's nodes
  /// The unit's node number `number` mod N; negative numbers are allowed.
  std::uint32_t node(std::int64_t number) const;
  /// Numbers nodes so that the rings of successive partitions enter each host of `rails` nodes at
  /// different nodes. Changes nothing unless the unit's nodes form whole hosts.
  void take_rail(std::uint32_t rails);
  /// The number of the unit's k-th node: k, unless take_rail() renumbered the nodes.
  std::int64_t number_of(std::int64_t k) const;
  /// Task::peer_offset of a message from one node to another.
  std::uint32_t offset(std::uint32_t from, std::uint32_t to) const {
    return (to + builder_.nodes() - from) % builder_.nodes();
  }

  /// Encodes: slice -> message. `peer_offset` as in Task.
  TaskId encode(std::uint32_t node, Role role, std::uint32_t peer_offset, TaskId after,
                TaskFlags flags = kNoFlags);
  /// Place where a raw slice arrives.
  enum class Lands : std::uint8_t {
    kInSlice,    ///< overwrites the slice
    kInMessage,  ///< a buffer from which add() takes it
  };
  /// Sends the message that the task `message` wrote, or the raw slice that it completed, between
  /// two nodes. Returns the Recv.
  TaskId transfer(std::uint32_t from, std::uint32_t to, TaskId message, Lands lands);
  /// Adds the received message to the slice, after the task `other`, which completes the node's own
  /// gradient or the sum so far. The task is a Decode that accumulates, or a Merge.
  TaskId add(std::uint32_t node, TaskId message, TaskId other, std::uint32_t peer_offset,
             TaskFlags flags);
  /// A contribution to a sum, from a sender to a receiver. Their slices are complete after the
  /// tasks `ready` (sender) and `other` (receiver).
  struct Contribution {
    std::uint32_t from = 0, to = 0;
    TaskId ready = 0, other = 0;
    Role role = Role::kWorker;     ///< role of the Encode
    TaskFlags encoded = kNoFlags;  ///< flags of the Encode
    TaskFlags added = kNoFlags;    ///< flags of add()
  };
  /// Sends the sender's slice, encoded unless raw, and adds it to the receiver's. Returns the task
  /// of add().
  TaskId contribute(const Contribution& what);
  /// Sends a broadcast's slice to a node, where it overwrites the node's own. If it is raw, the
  /// Recv does that, else a Decode after the Recv. Returns the Recv, whose message can be sent on.
  TaskId deliver(std::uint32_t from, std::uint32_t to, TaskId message);
  /// Decodes: message -> slice.
  TaskId decode(std::uint32_t node, TaskId message, std::uint32_t peer_offset);
  /// Makes every node keep the messages of all nodes, its own included, for decode_gathered(). Call
  /// it before anything is encoded.
  void gather_messages();
  /// Decodes the messages of all nodes, and overwrites the slice with their sum. Waits for
  /// `messages`, the tasks that write them on this node.
  TaskId decode_gathered(std::uint32_t node, std::span<const TaskId> messages);

 private:
  Task task(Kind kind, std::uint32_t node, std::uint32_t peer_offset, std::int64_t amount) const;
  TaskId add_after(const Task& task, TaskId before, const Operands& operands);
  std::uint32_t slice(std::uint32_t node);
  std::uint32_t new_message(std::uint32_t node, std::uint32_t from) {
    return gathered_.empty() ? builder_.message(node, work_.algorithm_index, message_bytes_)
                             : builder_.gathered_part(gathered_[node], from);
  }

  GraphBuilder& builder_;
  const UnitWork& work_;
  Ranks ranks_;
  std::uint32_t partition_;
  std::uint32_t rails_ = 1;  ///< nodes per host (take_rail()); 1: nodes keep their numbers
  Slice slice_;
  std::int64_t message_bytes_;
  std::vector<std::uint32_t> gathered_;  ///< per node: buffer of all messages, if kept
};

}  // namespace hipress::casync
