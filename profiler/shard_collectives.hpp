#pragma once

#include <cstdint>
#include <vector>

#include "costs/profile.hpp"
#include "profiler/options.hpp"

namespace hipress::profiler {

/// NCCL's all-gather, reduce-scatter and all-to-all, as sharded training uses them: the time of
/// one, by bytes of all shards; `sizes` are fp32 elements, rounded up to equal shards. Measured as
/// the library's all-reduce is, several at once and from a common start to the last rank's end.
/// Does nothing without NCCL: other transports have no such collectives.
void measure_shard_collectives(const Options& options, const Progress& progress,
                               const std::vector<std::int64_t>& sizes, costs::Profile& profile);

}  // namespace hipress::profiler
