#pragma once

#include <cstdint>
#include <vector>

#include "casync/task_graph.hpp"

namespace hipress::runtime {

/// What is issued to a library at once: messages, or all-reduces, none of which waits for
/// another. A library that runs operations in the order in which they are issued (NCCL) needs one
/// order that all ranks keep: every rank goes through the same rounds and does its own part of
/// each. So ranks never wait for each other in a circle: whatever a round waits for came in
/// earlier rounds.
struct Round {
  std::vector<casync::TaskId> sends;  ///< in the order in which both ends issue them
  /// One AllReduce task per node each, in the order in which every rank issues them.
  std::vector<std::vector<casync::TaskId>> reduces;
};

/// How much goes into a round.
struct RoundLimits {
  /// Of one rank, each way. More: fewer rounds; but nothing of a round can be used before all of it
  /// is there.
  std::int64_t bytes = std::int64_t{32} << 20;
  std::int32_t messages = 64;
  // What decides which messages meet in one round: nominal costs, the same on every rank whatever
  // it runs on. They need not be right: a round waits for all that is in it.
  std::int64_t round_ps = 10'000'000;  ///< that a round takes beside its bytes
  std::int64_t ps_per_byte = 40;       ///< 25 GB/s
  std::int64_t ps_per_element = 10;    ///< of an Encode, Decode or Merge
};

/// The rounds of a graph, a function of graph and limits alone. A node's computation is one task
/// after the other, each behind what it waits for. A round starts when the one before is over. It
/// takes whatever is ready by then; what has been ready longest comes first. Every Send and
/// AllReduce is in exactly one round. std::invalid_argument if an all-reduce lacks a node.
std::vector<Round> derive_rounds(const casync::TaskGraph& graph, const RoundLimits& limits = {});

}  // namespace hipress::runtime
