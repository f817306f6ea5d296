#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hipress::traces {

/// Information in the name of an FSDP range.
struct FsdpRange {
  bool communicates = false;  ///< it starts gathers or reductions
  bool is_named = false;      ///< `layer` is set; the root's is empty
  std::string layer = {};
};

/// Parses names such as "FullyShardedDataParallel._pre_forward" and "FSDP::all_gather (blocks.0)".
/// Empty for other names.
std::optional<FsdpRange> range_of_fsdp(std::string_view name);

}  // namespace hipress::traces
