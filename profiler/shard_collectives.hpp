#pragma once

#include <cstdint>
#include <vector>

#include "costs/profile.hpp"
#include "profiler/options.hpp"

namespace hipress::profiler {

/// Measures a library's all-gather, reduce-scatter and all-to-all, which sharded training uses: the
/// time of each by bytes of all shards. `sizes` are fp32 elements, rounded up to equal shards.
/// Several collectives are timed together, from a common start to the last rank's end, as for
/// all-reduces. The library is NCCL on a device, or the transport's own (Collective::shards) in
/// host memory. Adds nothing if the library lacks these collectives.
void measure_shard_collectives(const Options& options, const Progress& progress,
                               const std::vector<std::int64_t>& sizes, costs::Profile& profile);

}  // namespace hipress::profiler
