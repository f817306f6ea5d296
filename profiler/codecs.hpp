#pragma once

#include "costs/profile.hpp"
#include "profiler/hosts.hpp"
#include "profiler/options.hpp"
#include "profiler/variation.hpp"

namespace hipress::profiler {

/// Encode, decode and decode-and-add of every algorithm, and merge. Adds what varies to
/// `variations`.
void measure_codecs(const Options& options, const Hosts& hosts, const Progress& progress,
                    costs::Profile& profile, Variations& variations);

}  // namespace hipress::profiler
