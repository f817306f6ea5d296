#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "casync/plan.hpp"
#include "models/model.hpp"
#include "planner/timing/evaluation.hpp"

/// Plans of broadcasts of a root's tensors to all other nodes: topology, codec, number of chunks.
namespace hipress::planner {

/// Tensors to broadcast, and the options among which the planner chooses.
struct BroadcastProblem {
  const models::Model& model;  ///< all tensors ready at once (plans::as_parameters())
  const Machines& machines;    ///< at least two nodes
  std::uint32_t root = 0;
  /// Rows of casync::topologies() to try; empty: all broadcasts in which only the root encodes.
  std::vector<std::string> topologies = {};
  std::vector<std::string> algorithms = {};  ///< algorithms to try beside raw
  /// Number of chunks of the largest tensor; unset: the planner finds the best.
  std::optional<std::int32_t> chunks = {};
  /// Limit on simulations; chunk counts with better estimates are simulated first.
  std::int64_t evaluations = INT64_MAX;
};

/// Best chunk count for one topology and algorithm. It is the number of chunks of the largest
/// tensor; the other tensors are cut into chunks of the same length.
struct BroadcastChoice {
  std::string topology;
  std::string algorithm;  ///< empty: raw
  std::int64_t chunks = 0;
  std::int64_t chunk_elements = 0;  ///< elements of every chunk but the last
  double seconds = 0;               ///< duration of the broadcast
  std::int64_t counts = 0;          ///< number of distinct chunk counts
  std::int64_t simulations = 0;     ///< number of chunk counts that were simulated
  bool proven = false;              ///< true: no chunk count takes less time
};

struct BroadcastResult {
  casync::Plan plan;
  BroadcastChoice best;
  std::vector<BroadcastChoice> choices;  ///< one per topology and algorithm, raw first
  bool proven = true;                    ///< true: no other allowed choice is faster
};

/// Finds the fastest plan. For each topology and algorithm, chunk counts are simulated in the order
/// of their estimates. A count is skipped if its lower bound (casync::Topology::spread) is not
/// below the best time so far. The plan is therefore optimal, unless evaluations or the machines'
/// budget run out.
///
/// Throws InputError for an invalid root, a single node, chunks of less than 32 elements, a
/// topology that does not broadcast, an algorithm without costs in the profile, and a budget that
/// ends before anything was simulated.
BroadcastResult plan_broadcast(const BroadcastProblem& problem);

/// Filters `names`: algorithms that lose bits of the model's tensors.
std::vector<std::string> lossy_of(const std::vector<std::string>& names,
                                  const models::Model& model);

/// Algorithms that have costs in the profile and keep all bits of the model's tensors. Leaves out a
/// cast to the tensors' own dtype, in which raw tensors are sent anyway.
std::vector<std::string> lossless_algorithms(const costs::Profile& profile,
                                             const models::Model& model);

/// A number of chunks for a tensor.
struct ChunkCount {
  std::int64_t chunks = 1;
  std::int64_t elements = 0;  ///< number of elements of every chunk but the last
};
/// Chunk counts of a tensor of `elements` elements, ascending from 1. Leaves out counts that cut it
/// in the same way as a smaller count.
std::vector<ChunkCount> chunk_counts(std::int64_t elements);

}  // namespace hipress::planner
