#pragma once

#include "costs/profile.hpp"
#include "profiler/options.hpp"
#include "profiler/timing.hpp"

namespace hipress::profiler {

/// How sure times on a device must be.
StoppingRule stopping_rule(Effort effort);

/// The device's memory bandwidth (of a copy too large for any cache, reads and writes counted: the
/// ceiling of kernels), and encode, decode, decode-and-add and merge of 2^10 … 2^28 elements
/// (quick: 2^26), as far as they fit into its memory. Slices are taken in turn, so that data comes
/// from memory and not from a cache. The processes of a job keep step, and measure the same sizes.
void measure_device_kernels(const Options& options, const Progress& progress,
                            costs::Profile& profile);

/// How much a codec, a matrix product and transfers slow each other down on a device; transfers as
/// the options move messages: copies to and from pinned memory, or over NCCL between neighbours,
/// with all ranks at once. transport::PeerError where a rank or its NCCL fails.
costs::OverlapFactors measure_overlap(const Options& options, const Progress& progress);

/// How many times as long two works take while both are under way, of which each alone takes
/// `first_s` and `second_s` and both, started together, `together_s`: 1 where they do not disturb
/// each other, 2 where they take turns. Within 1 and costs::kMaxOverlap.
double overlap_factor(double first_s, double second_s, double together_s);

}  // namespace hipress::profiler
