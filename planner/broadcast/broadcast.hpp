#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "casync/plan.hpp"
#include "models/model.hpp"
#include "planner/timing/evaluation.hpp"

/// Plans of broadcasts: topology, codec and number of chunks for sending a root's tensors to all
/// other nodes.
namespace hipress::planner {

/// Tensors to broadcast, and the choices.
struct BroadcastProblem {
  const models::Model& model;  ///< all tensors ready at once (plans::as_parameters())
  const Machines& machines;    ///< at least two nodes
  std::uint32_t root = 0;
  /// Rows of casync::topologies() to try; empty: all broadcasts that encode once, at the root.
  std::vector<std::string> topologies = {};
  std::vector<std::string> algorithms = {};  ///< algorithms to try beside raw
  /// Number of chunks of the largest tensor; none: the planner finds the best.
  std::optional<std::int32_t> chunks = {};
  /// Limit on simulations. If it is below the number of chunk counts, the ones with the best
  /// estimates are simulated.
  std::int64_t evaluations = INT64_MAX;
};

/// Best chunk count for one topology and algorithm. With several tensors it counts the chunks of
/// the largest; the others are cut into chunks of the same length.
struct BroadcastChoice {
  std::string topology;
  std::string algorithm;  ///< empty: raw
  std::int64_t chunks = 0;
  std::int64_t chunk_elements = 0;  ///< elements of every chunk but the last
  double seconds = 0;               ///< duration of the broadcast
  std::int64_t counts = 0;          ///< number of distinct chunk counts
  std::int64_t simulations = 0;     ///< number of them simulated
  bool proven = false;              ///< no chunk count takes less
};

struct BroadcastResult {
  casync::Plan plan;
  BroadcastChoice best;
  std::vector<BroadcastChoice> choices;  ///< one per topology and algorithm, raw first
  bool proven = true;                    ///< no other allowed choice is faster
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

/// Algorithms with costs in the profile that keep all bits of the model's tensors. A cast to the
/// tensors' own dtype is left out, since raw tensors are sent that way anyway.
std::vector<std::string> lossless_algorithms(const costs::Profile& profile,
                                             const models::Model& model);

/// A number of chunks for a tensor.
struct ChunkCount {
  std::int64_t chunks = 1;
  std::int64_t elements = 0;  ///< number of elements of every chunk but the last
};
/// Chunk counts of a tensor of `elements` elements, ascending from 1. Counts that cut it like a
/// smaller count are left out.
std::vector<ChunkCount> chunk_counts(std::int64_t elements);

}  // namespace hipress::planner
