#pragma once

#include <functional>

#include "costs/profile.hpp"
#include "profiler/options.hpp"

namespace hipress::profiler {

/// Measures codecs and links of this machine by running small task graphs through the executor. A
/// cost is thus that of the same task in a synchronisation: cold data, hand-over between threads,
/// all ranks on one host. The result holds fits and samples. Nothing else may run meanwhile, or the
/// profile is wrong. io::InputError for no or an unknown algorithm, or fewer than two nodes.
costs::Profile measure(const Options& options, const Progress& progress);

/// Measures as measure() does, between two probes of this machine; the profile contains both.
/// Measures again, up to `again` times, if the probes say that the machine's speed changed by more
/// than the profile's spread explains. If the speed never stays the same, the spread is widened,
/// and a note says so. `probe` is collective in a job.
costs::Profile measure_while_steady(const Options& options, const Progress& progress,
                                    const std::function<costs::Probes()>& probe, int again);

}  // namespace hipress::profiler
