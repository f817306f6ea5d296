#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hipress::traces {

/// Content of the name of an FSDP range.
struct FsdpRange {
  bool communicates = false;  ///< true if it starts gathers or reductions
  bool is_named = false;      ///< true if `layer` is set; the root's is empty
  std::string layer = {};
};

/// Parses "FullyShardedDataParallel._pre_forward", "FSDP::all_gather (blocks.0)" …; empty for other
/// names.
std::optional<FsdpRange> range_of_fsdp(std::string_view name);

}  // namespace hipress::traces
