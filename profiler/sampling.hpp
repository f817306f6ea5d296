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

/// The series that the CPU work of transfers comes from; kept when links alone are measured.
inline constexpr const char* kCoreSeries = "link.all_to_all";

/// Median, 10th and 90th percentile of times measured for one x; at least one time.
costs::Sample summarise(std::int64_t x, std::vector<double> seconds);

/// Fits the samples, keeps them in the profile under `name`, and returns the curve.
costs::Curve fit_and_keep(costs::Profile& profile, const std::string& name,
                          std::vector<costs::Sample> samples);

/// Nodes that a calibration must have which needs `least` of them: with processes, all of the
/// job's.
std::uint32_t job_nodes(const Options& options, std::uint32_t least);

/// Replays a calibration, without verification (its graphs are no synchronisation). All processes
/// of a job get the same result.
executor::ReplayResult run(const Calibration& calibration, const Options& options);

}  // namespace hipress::profiler
