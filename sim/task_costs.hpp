#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "casync/plan.hpp"
#include "casync/task_graph.hpp"
#include "costs/collectives.hpp"
#include "costs/profile.hpp"
#include "costs/traffic.hpp"

namespace hipress::sim {

using casync::Picoseconds;

/// Longest time that one task may take, jitter included: 1e6 s. Beyond it a cost is a mistake, and
/// sums would leave 64 bits.
inline constexpr double kLongest_s = 1e6;
inline constexpr std::int64_t kLongest_ps = 1'000'000'000'000'000'000;

/// Costs of the tasks of one plan's graphs, looked up once: by kind and by index into
/// Plan::algorithms.
class TaskCosts {
 public:
  /// InputError if the profile lacks one of the plan's algorithms.
  TaskCosts(const costs::Profile& profile, const std::vector<casync::Algorithm>& algorithms);
  /// Time of an Encode, Decode or Merge of `task.amount` elements alone on its codec stream, cut
  /// among that many GPUs that work at once. `divisor` is the graph's. A batched task costs
  /// nothing, its leader what all of the batch does. `factors` are the task's, by
  /// TaskGraph::factors_of(). InputError if the profile does not say what so many stages cost.
  Picoseconds codec_time(const casync::Task& task, std::uint32_t divisor, std::uint32_t gpus = 1,
                         std::span<const casync::Factor> factors = {}) const;
  /// Time of an AllReduce over `nodes` nodes with nothing else on that link: the library's time for
  /// the task's bytes. If the task casts, an encode before and a decode after are added, at compute
  /// speed 1, each cut among that many GPUs. `ranks_per_core` as of costs::CollectiveCosts.
  Picoseconds all_reduce_time(const casync::Task& task, std::uint32_t nodes,
                              const costs::LinkCosts& link, std::uint32_t gpus = 1,
                              double ranks_per_core = 1) const;

  /// Bytes that an Encode, Decode or Merge reads and writes in memory, at least; 0: not known.
  double memory_bytes(const casync::Task& task) const;

  /// Time of an AllGather, ReduceScatter or AllToAll of a group of so many nodes alone on that
  /// link, as costs::ShardCosts says.
  Picoseconds group_time(const casync::Task& task, std::uint32_t nodes,
                         const costs::LinkCosts& link, double ranks_per_core = 1) const;

 private:
  double slice_s(const casync::Task& task, std::int64_t elements, std::uint32_t divisor) const;
  double stage_s(const casync::Task& task, std::span<const casync::Factor> factors) const;

  std::vector<costs::CodecCosts> codecs_;
  std::vector<costs::Traffic> traffic_;  // per element; all 0: not known
  costs::Curve merge_;
  costs::AllReduceCosts all_reduce_;
  costs::ShardCosts shards_;
};

}  // namespace hipress::sim
