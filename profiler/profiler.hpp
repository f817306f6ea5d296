#pragma once

#include <functional>
#include <string>

#include "costs/profile.hpp"
#include "profiler/options.hpp"

/// Profiler of kernels and links.
///
///   profiler::Options options;
///   options.algorithms = {"onebit", "dgc"};
///   options.effort = profiler::Effort::kQuick;
///   const costs::Profile profile = profiler::measure(
///       options, [](const std::string& what) { std::fprintf(stderr, "%s\n", what.c_str()); });
///   const costs::Curve& encode = profile.codecs.at("onebit").encode;
///   std::printf("%.3f ms\n", 1e3 * encode(1 << 20));  // an encode of 2^20 elements
namespace hipress::profiler {

/// Name of this machine's processor, and number of cores that this process may use.
std::string this_machine();

/// Measures codecs and links by running small task graphs through the executor. A cost is thus that
/// of the same task in a synchronisation: with data that is not cached, hand-over between threads,
/// and all ranks of a host at work. The result holds fits and samples. It is wrong if anything else
/// runs at the same time. Throws io::InputError if there is no algorithm or an unknown one, or for
/// fewer than two nodes.
costs::Profile measure(const Options& options, const Progress& progress);

/// Runs measure() between two probes of this machine's speed, and stores their geometric mean in
/// the profile. Measures again, up to `again` times, if the speed changed by more than the
/// profile's spread explains. If it still does then, the spread is widened, and a note says so.
/// `probe` is collective in a job.
costs::Profile measure_while_steady(const Options& options, const Progress& progress,
                                    const std::function<costs::Probes()>& probe, int again);

}  // namespace hipress::profiler
