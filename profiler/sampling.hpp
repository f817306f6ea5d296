#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "costs/curve.hpp"
#include "costs/profile.hpp"
#include "profiler/calibration.hpp"
#include "profiler/options.hpp"
#include "replay/replay.hpp"

namespace hipress::profiler {

/// Series that gives the CPU time of transfers; kept if only links are measured anew.
inline constexpr const char* kCoreSeries = "link.all_to_all";
/// Prefix of the series that replace kCoreSeries if links limit transfers.
inline constexpr const char* kPacedCoreSeries = "link.cores";

/// Median, 10th and 90th percentile of the times for one x. Requires at least one time.
costs::Sample summarise(std::int64_t x, std::vector<double> seconds);
/// Statistics of times from passes that are seconds or minutes apart. The median is the mean of the
/// passes' medians, so every state of the machine counts. Percentiles are over all times.
costs::Sample summarise_passes(std::int64_t x, const std::vector<std::vector<double>>& passes);
/// Statistics of times from several iterations, with a mean, because a prediction sums up many such
/// times. It is the median of the iterations' means, so slow iterations do not affect it. Times are
/// capped at twice the median, since few samples cannot estimate rare events (Interruptions does).
costs::Sample summarise_iterations(std::int64_t x,
                                   const std::vector<std::vector<double>>& iterations);

/// Events that occasionally take a core from a task for longer than the task lasts: interrupts, or
/// a hypervisor that gives the core to another guest. They hit tasks at random, so all tasks on
/// these cores are charged the same factor.
class Interruptions {
 public:
  /// Cap on one interruption, since a stopped machine is not representative.
  static constexpr double kLongest_s = 0.02;

  /// Adds the times of equal tasks, by iteration.
  void add(const std::vector<std::vector<double>>& iterations);
  /// Mean time of a task with interruptions, divided by its mean time without.
  double factor() const { return without_s_ > 0 ? with_s_ / without_s_ : 1; }

 private:
  double with_s_ = 0;
  double without_s_ = 0;
};

/// Fits the samples, keeps them in the profile under `name`, and returns the curve.
costs::Curve fit_and_keep(costs::Profile& profile, const std::string& name,
                          std::vector<costs::Sample> samples);

/// Seconds per unit of x, between the first (smallest) and the last (largest) sample.
double slope(const std::vector<costs::Sample>& samples,
             double costs::Sample::*time = &costs::Sample::median_s);
/// Bandwidth in bytes per second from transfers by size. Throws io::RunError with `what`, the name
/// of the measurement, if larger transfers did not take longer.
double bandwidth_of(const std::string& what, const std::vector<costs::Sample>& samples);

/// Number of nodes for a calibration that needs `least`: in a job of processes, all of its nodes.
std::uint32_t job_nodes(const Options& options, std::uint32_t least);

struct Repetitions {
  int warmups;
  int iterations;
};

/// Replays a calibration. Does not verify values, since the graph does not synchronise gradients.
/// All processes of a job get the same result. `meter` is ReplayOptions::meter.
replay::ReplayResult run(const Calibration& calibration, const Options& options,
                         const Repetitions& repetitions, const std::function<double()>& meter = {});
/// Default repetitions of an effort.
Repetitions usual(const Options& options);

/// Rank for measurements that each process makes alone: this process's, or 0 if ranks are threads.
int own_rank(const Options& options);

/// Barrier of a job's processes, if there are several. Called between measurements that each rank
/// makes alone, so ranks wait for a slower device for at most one measurement (below `timeout_s`).
void keep_step(const Options& options);

/// Calls `body` with an endpoint for control messages: once for this process's rank, or for each
/// rank on a thread of its own. Rethrows an exception of any call.
void on_all_ranks(const Options& options, const std::function<void(transport::Endpoint&)>& body);

}  // namespace hipress::profiler
