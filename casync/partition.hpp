#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "casync/graph_builder.hpp"
#include "casync/topology.hpp"

namespace hipress::casync {

/// How far it is from one partition to expand to the next: in a folded graph every N-th stands for
/// those up to the next, which are the same on other nodes.
inline std::int64_t partition_step(const GraphBuilder& builder) {
  return builder.folded() ? builder.nodes() : 1;
}

/// Adds the tasks of one partition, so that a topology reads like its description: who encodes
/// what, and which message goes where. Every function returns the task it added, already behind its
/// predecessors.
class PartitionTasks {
 public:
  PartitionTasks(GraphBuilder& builder, const UnitWork& work, std::int64_t partition);

  bool empty() const { return slice_.elements == 0; }
  bool compressed() const { return work_.algorithm != nullptr; }
  /// Partial sums travel in half precision: every contribution is divided by N before it is added.
  bool divide_first() const {
    return compressed() && work_.algorithm->half_precision && !work_.divided;
  }
  std::uint32_t nodes() const { return ranks_.nodes; }  ///< N, those of the unit
  /// The one of them that has this number mod N, for negative numbers too.
  std::uint32_t node(std::int64_t number) const;
  /// Task::peer_offset of what goes from one node to another.
  std::uint32_t offset(std::uint32_t from, std::uint32_t to) const {
    return (to + builder_.nodes() - from) % builder_.nodes();
  }

  /// slice -> message. `peer_offset` as in Task.
  TaskId encode(std::uint32_t node, Role role, std::uint32_t peer_offset, TaskId after,
                TaskFlags flags = kNoFlags);
  /// Where a raw slice arrives.
  enum class Lands : std::uint8_t {
    kInSlice,    ///< which it overwrites
    kInMessage,  ///< from which add() takes it
  };
  /// What `message` has written goes from one node to another, or, raw, the slice as it is behind
  /// that task; returns the Recv.
  TaskId transfer(std::uint32_t from, std::uint32_t to, TaskId message, Lands lands);
  /// Adds the received message to the slice once `other` (the node's own gradient, or the sum so
  /// far) is there: a Decode that accumulates, or a Merge.
  TaskId add(std::uint32_t node, TaskId message, TaskId other, std::uint32_t peer_offset,
             TaskFlags flags);
  /// Who sends a contribution, and who adds it; behind `ready` and `other`, `from` and `to` have
  /// what they have of the sum.
  struct Contribution {
    std::uint32_t from = 0, to = 0;
    TaskId ready = 0, other = 0;
    Role role = Role::kWorker;     ///< of the Encode
    TaskFlags encoded = kNoFlags;  ///< the Encode's
    TaskFlags added = kNoFlags;    ///< of add()
  };
  /// The slice of one node, encoded unless it goes raw, is added to that of another; the task of
  /// add().
  TaskId contribute(const Contribution& what);
  /// Of a broadcast: sends the root's slice from a node that has it to one that takes it over in
  /// place of its own. The Recv fills a raw slice; a Decode behind the Recv fills a compressed one.
  /// Returns the Recv, whose message can be sent on.
  TaskId deliver(std::uint32_t from, std::uint32_t to, TaskId message);
  /// The Decode of the last deliver().
  TaskId last_decode() const { return last_decode_; }
  /// message -> slice.
  TaskId decode(std::uint32_t node, TaskId message, std::uint32_t peer_offset);
  /// Before anything is encoded: every node keeps its own message and those that are transferred to
  /// it from where they were encoded, for decode_gathered().
  void gather_messages();
  /// The sum of all nodes' messages -> slice, behind the tasks that leave them here.
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
  Slice slice_;
  std::int64_t message_bytes_;
  TaskId last_decode_ = kNoIndex;
  std::vector<std::uint32_t> gathered_;  ///< per node: the buffer of all messages; empty: none
};

}  // namespace hipress::casync
