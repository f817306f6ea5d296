#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/schedules/scheduled.hpp"

/// What others do with a job whose parameters are in shards.
namespace hipress::planner {

struct ShardedBaselineRow {
  std::string_view name;   ///< "fsdp2"
  std::string_view title;  ///< "FSDP2 by default": in sentences
  std::string_view help;
  /// None where it makes no sense on these machines, or is what another row makes. `problem` is a
  /// GpuProblem's.
  std::optional<casync::Plan> (*make)(const Problem& problem);
  bool is_default = false;  ///< what PyTorch does unless it is told otherwise
  bool compresses = false;  ///< otherwise than by a cast to half precision
};

/// FSDP2 and FSDP1 as they come and in bf16, HSDP, ZeRO++: adding one is one row.
std::span<const ShardedBaselineRow> sharded_baselines();

/// A row, and what it comes to on the problem's machines.
struct ShardedBaseline {
  const ShardedBaselineRow* row = nullptr;
  std::optional<ScheduledPlan> found;  ///< none: the profile lacks one of its algorithms
  std::string diagnostic = {};         ///< why there is none
};

/// All rows that make a plan on these machines, in their order, by `shards_by` (Plan::shards_by),
/// as what is laid beside them is. Raw messages are fp32; a model of one half-precision type is
/// therefore cast to it. io::InputError where GPUs cannot be nodes.
std::vector<ShardedBaseline> simulate_sharded_baselines(
    const Problem& problem, std::string_view optimizer = kUsualOptimizer,
    const std::string& shards_by = std::string(casync::kLibrary));

}  // namespace hipress::planner
