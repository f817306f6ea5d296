#pragma once

#include <optional>
#include <string>
#include <string_view>

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

}  // namespace hipress::traces
