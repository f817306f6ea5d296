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

/// Longest time that one task may take, jitter included: 1e6 s. A longer one is a mistake in the
/// costs, and sums of such times would not fit in 64 bits.
inline constexpr double kLongest_s = 1e6;
inline constexpr std::int64_t kLongest_ps = 1'000'000'000'000'000'000;

/// Costs of tasks in graphs of one plan. The constructor looks up the profile's entries.
class TaskCosts {
 public:
  /// Throws InputError if the profile lacks one of the plan's algorithms.
  TaskCosts(const costs::Profile& profile, const std::vector<casync::Algorithm>& algorithms);
  /// Time of an Encode, Decode or Merge of `task.amount` elements, split across `gpus` GPUs, if it
  /// runs alone. `divisor` is TaskGraph::divisor; `factors` are TaskGraph::factors_of(task). 0 for
  /// a batched task: its leader bears the batch's cost. Throws InputError if the profile lacks
  /// costs for the algorithm's number of stages.
  Picoseconds codec_time(const casync::Task& task, std::uint32_t divisor, std::uint32_t gpus = 1,
                         std::span<const casync::Factor> factors = {}) const;
  /// Time of an AllReduce over `nodes` nodes on an otherwise idle link: the library's time for the
  /// task's bytes. If the task casts, an encode before and a decode after it are added, at compute
  /// speed 1, each split across `gpus` GPUs. `ranks_per_core` as in costs::CollectiveCosts.
  Picoseconds all_reduce_time(const casync::Task& task, std::uint32_t nodes,
                              const costs::LinkCosts& link, std::uint32_t gpus = 1,
                              double ranks_per_core = 1) const;

  /// Shares of a collective's duration during which its bytes keep the ports of a machine's hosts
  /// busy, over `nodes` nodes.
  costs::PortShares port_shares(const casync::Task& task, std::uint32_t nodes,
                                const costs::LinkCosts& link) const;

  /// Lower bound on the memory traffic of an Encode, Decode or Merge, in bytes; 0 if unknown.
  double memory_bytes(const casync::Task& task) const;

  /// Time of an AllGather, ReduceScatter or AllToAll in a group of `nodes` nodes on an otherwise
  /// idle link (costs::ShardCosts).
  Picoseconds group_time(const casync::Task& task, std::uint32_t nodes,
                         const costs::LinkCosts& link, double ranks_per_core = 1) const;

 private:
  double slice_s(const casync::Task& task, std::int64_t elements, std::uint32_t divisor) const;
  double stage_s(const casync::Task& task, std::span<const casync::Factor> factors) const;

  std::vector<costs::CodecCosts> codecs_;
  std::vector<costs::Traffic> traffic_;  // per element; all 0 if unknown
  costs::Curve merge_;
  costs::AllReduceCosts all_reduce_;
  costs::ShardCosts shards_;
};

}  // namespace hipress::sim
