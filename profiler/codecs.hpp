#pragma once

#include "costs/profile.hpp"
#include "profiler/hosts.hpp"
#include "profiler/options.hpp"
#include "profiler/variation.hpp"

namespace hipress::profiler {

/// Measures encode, decode and decode-and-add of every algorithm, and merge, on the CPU. Adds their
/// variation to `variations`.
void measure_codecs(const Options& options, const Hosts& hosts, const Progress& progress,
                    costs::Profile& profile, Variations& variations);

}  // namespace hipress::profiler
