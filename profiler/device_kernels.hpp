#pragma once

#include "costs/profile.hpp"
#include "profiler/options.hpp"
#include "profiler/timing.hpp"

namespace hipress::profiler {

/// Stopping rule for times on a device.
StoppingRule stopping_rule(Effort effort);

/// Measures the device's memory bandwidth, and encode, decode, decode-and-add and merge of 2^10 …
/// 2^28 elements (quick: 2^26), up to the largest size that fits into its memory. The bandwidth is
/// that of a copy too large for any cache, reads and writes counted; kernels cannot exceed it.
/// Slices take turns, so data comes from memory and not from a cache. The processes of a job
/// measure the same sizes at the same time.
void measure_device_kernels(const Options& options, const Progress& progress,
                            costs::Profile& profile);

}  // namespace hipress::profiler
