#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hipress::traces {

/// What the name of a range of FSDP's says.
struct FsdpRange {
  bool communicates = false;  ///< gathers or reductions are started in it
  bool is_named = false;      ///< by `layer`, which is empty for the root
  std::string layer = {};
};

/// Of "FullyShardedDataParallel._pre_forward", "FSDP::all_gather (blocks.0)" …; none: of no hook of
/// FSDP's.
std::optional<FsdpRange> range_of_fsdp(std::string_view name);

/// Elements of all tensors together; 0: one is not told.
std::int64_t elements_of_all(std::span<const std::vector<std::int64_t>> shapes);

}  // namespace hipress::traces
