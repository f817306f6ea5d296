#pragma once

#include "costs/profile.hpp"
#include "profiler/hosts.hpp"
#include "profiler/options.hpp"
#include "profiler/variation.hpp"

namespace hipress::profiler {

// Both add what varies to `variations`.

/// What a transfer costs the cores, on links that the profile knows.
void measure_transfer_cores(const Options& options, const Hosts& hosts, const Progress& progress,
                            costs::Profile& profile, Variations& variations);

/// Point to point, everybody to everybody, fan-in and fan-out, and the library's all-reduce; of
/// NCCL all collectives that sharded training uses.
void measure_links(const Options& options, const Hosts& hosts, const Progress& progress,
                   costs::Profile& profile, Variations& variations);

}  // namespace hipress::profiler
