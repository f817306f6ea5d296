#pragma once

#include <cstdint>
#include <span>

#include "planner/analysis/verdict.hpp"
#include "planner/schedules/sharded_baselines.hpp"

namespace hipress::planner {

/// A plan, and what it is compared with.
struct ShardedComparison {
  const ScheduledPlan& plan;
  std::span<const ShardedBaseline> baselines;
  std::int64_t memory_bytes = INT64_MAX;  ///< of each GPU: what takes more is no rival
  costs::Spread spread = {};

  /// The fastest of PyTorch's defaults that fits; null: none does.
  const ShardedBaseline* fastest_default() const;
  /// The fastest of all that fit and compress nothing, or to half precision alone; null: none does.
  const ShardedBaseline* fastest_uncompressed() const;
};

/// The verdict on a plan for a job whose parameters are in shards. It is to compress where the plan
/// does, and is faster than all baselines without compression with probability kSure, or where
/// ZeRO++ is that much faster than a plan that compresses nothing; against it where the saving is
/// within Problem::tolerance. The sentence says what the plan saves of PyTorch's defaults, too.
Verdict judge_shards(const Problem& problem, const ShardedComparison& comparison);

}  // namespace hipress::planner
