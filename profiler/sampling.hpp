#pragma once

#include <cstdint>
#include <functional>
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
/// The same of times measured in passes, minutes or seconds apart: the mean of the passes' medians,
/// as every state that the machine was in counts, and percentiles of all times together.
costs::Sample summarise_passes(std::int64_t x, const std::vector<std::vector<double>>& passes);

/// Fits the samples, keeps them in the profile under `name`, and returns the curve.
costs::Curve fit_and_keep(costs::Profile& profile, const std::string& name,
                          std::vector<costs::Sample> samples);

/// Nodes that a calibration must have which needs `least` of them: with processes, all of the
/// job's.
std::uint32_t job_nodes(const Options& options, std::uint32_t least);

/// How many ranks code at once when all cores do: the same on all ranks of a job.
std::uint32_t coding_cores(const Options& options);

/// What a kernel takes of its host's memory bandwidth if `cores` cores that run one each need
/// `together_s` for what one alone does in `alone_s`: all of it if they are so many times slower, a
/// part of 1/cores if they are as fast, and then it counts as none.
double memory_share(double alone_s, double together_s, std::uint32_t cores);

/// What a core that moves messages takes of it, if cores - 1 of them slow a kernel with that share
/// by `factor`.
double core_memory_share(double factor, double kernel_share, std::uint32_t cores);

/// How many iterations a calibration runs.
struct Repetitions {
  int warmups;
  int iterations;
};

/// Replays a calibration, without verification (its graphs are no synchronisation). All processes
/// of a job get the same result.
executor::ReplayResult run(const Calibration& calibration, const Options& options,
                           const Repetitions& repetitions);
/// The same, as often as the effort says.
executor::ReplayResult run(const Calibration& calibration, const Options& options);

/// Durations of the tasks that `wanted` accepts, in all iterations: one alone may be disturbed.
template <class Predicate>
std::vector<double> durations(const casync::TaskGraph& graph,
                              const std::vector<traces::Timeline>& timelines, Predicate wanted) {
  std::vector<double> seconds;
  for (casync::TaskId id = 0; id < graph.tasks(); ++id) {
    if (!wanted(graph[id])) continue;
    for (const traces::Timeline& timeline : timelines)
      seconds.push_back(casync::to_seconds(timeline.end[id] - timeline.start[id]));
  }
  return seconds;
}

/// The rank that measures what is one rank's alone: this process's, or the first of its threads.
int own_rank(const Options& options);

/// Calls `body` as every rank of the job that measures, with an endpoint for control: of this
/// process's rank, or of all, on threads of their own. Rethrows what one of them throws.
void on_all_ranks(const Options& options, const std::function<void(transport::Endpoint&)>& body);

}  // namespace hipress::profiler
