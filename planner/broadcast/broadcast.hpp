#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "casync/plan.hpp"
#include "models/model.hpp"
#include "planner/timing/evaluation.hpp"

/// Plans of broadcasts: by which strategy, with which codec, and in how many chunks the tensors of
/// a root reach all other nodes.
namespace hipress::planner {

/// What is to be broadcast, and what there is to choose from.
struct BroadcastProblem {
  const models::Model& model;  ///< all tensors ready at once (plans::as_parameters())
  const Machines& machines;    ///< of at least two nodes
  std::uint32_t root = 0;
  std::vector<std::string> strategies = {};  ///< rows of casync::strategies(); empty: all of the
                                             ///< operation that encode once
  std::vector<std::string> algorithms = {};  ///< beside raw
  std::optional<std::int32_t> chunks = {};  ///< of the largest tensor; none: the best of all counts
  std::int64_t evaluations = INT64_MAX;     ///< simulations; fewer: chunk counts by estimate
};

/// The best chunk count for one strategy and algorithm. Of several tensors it is the largest one's:
/// the others are cut into chunks as long.
struct BroadcastChoice {
  std::string strategy;
  std::string algorithm;  ///< empty: raw
  std::int64_t chunks = 0;
  std::int64_t chunk_elements = 0;  ///< of all but the last
  double seconds = 0;
  std::int64_t counts = 0;       ///< chunk counts that make different chunks
  std::int64_t simulations = 0;  ///< of them
  bool proven = false;           ///< no chunk count takes less
};

struct BroadcastResult {
  casync::Plan plan;
  BroadcastChoice best;
  std::vector<BroadcastChoice> choices;  ///< per strategy and algorithm, raw first
  bool proven = true;  ///< no strategy, algorithm and chunk count of the problem's is faster
};

/// The fastest plan. Of each strategy and algorithm the most promising count is simulated first,
/// then the others in the order of estimates, and counts are left out that take, by their bound
/// (casync::Strategy::spread), no less than the best of the same: the best of all, unless
/// evaluations or the machines' budget ran out. InputError for a root that is no node, a single
/// node, more chunks than can hold 32 elements, a strategy that is none of broadcasts, an algorithm
/// that the profile has no costs for, or none at all in time.
BroadcastResult plan_broadcast(const BroadcastProblem& problem);

/// The names of an algorithm list that lose bits of the model's tensors.
std::vector<std::string> lossy_of(const std::vector<std::string>& names,
                                  const models::Model& model);

/// Those algorithms with costs in the profile that keep all bits of the model's tensors, and are
/// not what raw tensors of this dtype are sent as anyway.
std::vector<std::string> lossless_algorithms(const costs::Profile& profile,
                                             const models::Model& model);

/// Every chunk count from 1 on that makes other chunks than smaller ones do, for a tensor of so
/// many elements, and the elements of all its chunks but the last.
struct ChunkCount {
  std::int64_t chunks = 1;
  std::int64_t elements = 0;
};
std::vector<ChunkCount> chunk_counts(std::int64_t elements);

}  // namespace hipress::planner
