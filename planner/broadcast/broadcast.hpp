#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "casync/plan.hpp"
#include "models/model.hpp"
#include "planner/timing/evaluation.hpp"

/// Plans of broadcasts: by which topology, with which codec, and in how many chunks the tensors of
/// a root reach all other nodes.
namespace hipress::planner {

/// What is to be broadcast, and what there is to choose from.
struct BroadcastProblem {
  const models::Model& model;  ///< all tensors ready at once (plans::as_parameters())
  const Machines& machines;    ///< of at least two nodes
  std::uint32_t root = 0;
  /// Rows of casync::topologies() to try; empty: all broadcasts that encode once, at the root.
  std::vector<std::string> topologies = {};
  std::vector<std::string> algorithms = {};  ///< to try beside raw
  /// Chunks of the largest tensor; none: the planner looks for the best number.
  std::optional<std::int32_t> chunks = {};
  /// The most simulations. With fewer than there are chunk counts, estimates say which are
  /// simulated.
  std::int64_t evaluations = INT64_MAX;
};

/// The best chunk count for one topology and algorithm. With several tensors it counts the chunks
/// of the largest one; the others are cut into chunks of the same length.
struct BroadcastChoice {
  std::string topology;
  std::string algorithm;  ///< empty: raw
  std::int64_t chunks = 0;
  std::int64_t chunk_elements = 0;  ///< elements of every chunk but the last
  double seconds = 0;               ///< that the broadcast takes
  std::int64_t counts = 0;          ///< the chunk counts that make different chunks
  std::int64_t simulations = 0;     ///< how many of these were simulated
  bool proven = false;              ///< no chunk count takes less
};

struct BroadcastResult {
  casync::Plan plan;
  BroadcastChoice best;
  std::vector<BroadcastChoice> choices;  ///< one per topology and algorithm, raw first
  bool proven = true;                    ///< no other choice that the problem allows is faster
};

/// The fastest plan. For each topology and algorithm, chunk counts are simulated in the order of
/// their estimated times. A count is left out if its lower bound (casync::Topology::spread) is no
/// less than the best time until then. The plan is therefore the fastest of all, unless the
/// evaluations or the machines' budget run out first.
///
/// InputError for a root that is no node, a single node, more chunks than can hold 32 elements
/// each, a topology that does not broadcast, an algorithm without costs in the profile, and a
/// budget that ends before anything was simulated.
BroadcastResult plan_broadcast(const BroadcastProblem& problem);

/// Those of the named algorithms that lose bits of the model's tensors.
std::vector<std::string> lossy_of(const std::vector<std::string>& names,
                                  const models::Model& model);

/// The algorithms with costs in the profile that keep all bits of the model's tensors. A cast to
/// the dtype that the tensors have is left out, since raw tensors are sent that way anyway.
std::vector<std::string> lossless_algorithms(const costs::Profile& profile,
                                             const models::Model& model);

/// A number of chunks for a tensor.
struct ChunkCount {
  std::int64_t chunks = 1;
  std::int64_t elements = 0;  ///< of every chunk but the last
};
/// The chunk counts of a tensor of so many elements, ascending from 1. A count is left out if it
/// cuts the tensor as a smaller one does.
std::vector<ChunkCount> chunk_counts(std::int64_t elements);

}  // namespace hipress::planner
