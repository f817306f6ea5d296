#pragma once

#include <cstdint>
#include <vector>

#include "costs/profile.hpp"
#include "profiler/options.hpp"

namespace hipress::profiler {

/// A library's all-gather, reduce-scatter and all-to-all, as sharded training uses them: the time
/// of one, by bytes of all shards; `sizes` are fp32 elements, rounded up to equal shards. Measured
/// as the library's all-reduce is, several together and from a common start to the last rank's end.
/// NCCL's on a device, or those of a transport's own library (Collective::shards) in the host's
/// memory. Adds nothing where there are none.
void measure_shard_collectives(const Options& options, const Progress& progress,
                               const std::vector<std::int64_t>& sizes, costs::Profile& profile);

}  // namespace hipress::profiler
