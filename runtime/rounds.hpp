#pragma once

#include <cstdint>
#include <vector>

#include "casync/task_graph.hpp"

namespace hipress::runtime {

/// Messages or all-reduces issued to a library at once; none waits for another. A library that runs
/// operations in the order in which they are issued (NCCL) needs the same order on all ranks. Every
/// rank therefore runs the same rounds, and does its own part of each. As a round depends only on
/// earlier ones, no deadlock is possible.
struct Round {
  std::vector<casync::TaskId> sends;  ///< in the order in which both ends issue them
  /// Per all-reduce, its task on every node; in the order in which every rank issues them.
  std::vector<std::vector<casync::TaskId>> reduces;
};

/// Limits of a round.
struct RoundLimits {
  /// Bytes per rank and direction. A larger limit means fewer rounds, but a message can be used
  /// only when its whole round has arrived.
  std::int64_t bytes = std::int64_t{32} << 20;
  std::int32_t messages = 64;
  // Nominal costs, which decide which messages share a round. They are the same on every rank,
  // whatever its hardware. They need not be accurate: a round waits for all its messages.
  std::int64_t round_ps = 10'000'000;  ///< fixed cost of a round
  std::int64_t ps_per_byte = 40;       ///< 25 GB/s
  std::int64_t ps_per_element = 10;    ///< cost per element of an Encode, Decode or Merge
};

/// Derives the rounds from the graph and the limits alone. Assumes that a node computes one task
/// after the other, each after its predecessors. A round starts when the previous one is over, with
/// the messages that are ready by then, in the order in which they became ready. Every Send and
/// AllReduce is in exactly one round. Throws std::invalid_argument if an all-reduce lacks a node.
std::vector<Round> derive_rounds(const casync::TaskGraph& graph, const RoundLimits& limits = {});

}  // namespace hipress::runtime
