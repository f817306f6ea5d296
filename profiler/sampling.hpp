#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costs/curve.hpp"
#include "costs/profile.hpp"
#include "executor/replay.hpp"
#include "profiler/calibration.hpp"
#include "profiler/profiler.hpp"

namespace hipress::profiler {

/// Median, 10th and 90th percentile of times measured for one x; at least one time.
costs::Sample summarise(std::int64_t x, std::vector<double> seconds);

/// Fits the samples, keeps them in the profile under `name`, and returns the curve.
costs::Curve fit_and_keep(costs::Profile& profile, const std::string& name,
                          std::vector<costs::Sample> samples);

/// Replays a calibration with ranks as threads, without verification (its graphs are no
/// synchronisation).
executor::ReplayResult run(const Calibration& calibration, const Options& options);

/// Least time of the measured iterations: what the machine does when nothing else disturbs it.
double least_s(const executor::ReplayResult& result);
double median_s(const executor::ReplayResult& result);

}  // namespace hipress::profiler
