#pragma once

#include "costs/profile.hpp"
#include "profiler/hosts.hpp"
#include "profiler/options.hpp"
#include "profiler/variation.hpp"

namespace hipress::profiler {

// Both functions add the variation of their measurements to `variations`.

/// Measures the core time of transfers for a profile that already has its links.
void measure_transfer_cores(const Options& options, const Hosts& hosts, const Progress& progress,
                            costs::Profile& profile, Variations& variations);

/// Measures links: point to point, all to all, fan-in and fan-out, the library's all-reduce, and
/// its collectives for sharded training (measure_shard_collectives()).
void measure_links(const Options& options, const Hosts& hosts, const Progress& progress,
                   costs::Profile& profile, Variations& variations);

}  // namespace hipress::profiler
