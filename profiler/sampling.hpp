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

/// The series that the CPU work of transfers comes from; kept when links alone are measured.
inline constexpr const char* kCoreSeries = "link.all_to_all";
/// What the names of those begin with that it comes from where links set the pace.
inline constexpr const char* kPacedCoreSeries = "link.cores";

/// Median, 10th and 90th percentile of times measured for one x; at least one time.
costs::Sample summarise(std::int64_t x, std::vector<double> seconds);
/// The same of times measured in passes, minutes or seconds apart: the mean of the passes' medians,
/// as every state that the machine was in counts, and percentiles of all times together.
costs::Sample summarise_passes(std::int64_t x, const std::vector<std::vector<double>>& passes);
/// Statistics of all times of some iterations together. They include a mean, because a prediction
/// sums up many such times. The mean is the median of the iterations' means: a machine that is slow
/// in some iterations says nothing about the others. A time beyond twice the median counts as twice
/// the median: so few samples say nothing about rare events (Interruptions does).
costs::Sample summarise_iterations(std::int64_t x,
                                   const std::vector<std::vector<double>>& iterations);

/// Events that take a core away from tasks now and then for longer than the tasks last: an
/// interrupt, or a host that lends the core to another machine. Which task is hit is chance, so all
/// tasks that were measured on these cores are charged alike.
class Interruptions {
 public:
  /// One that is longer counts as that: a machine that was stopped says nothing.
  static constexpr double kLongest_s = 0.02;

  /// Of times of tasks that are alike.
  void add(const std::vector<std::vector<double>>& iterations);
  /// What a task takes with its part of them, over what it takes without.
  double factor() const { return without_s_ > 0 ? with_s_ / without_s_ : 1; }

 private:
  double with_s_ = 0;
  double without_s_ = 0;
};

/// Fits the samples, keeps them in the profile under `name`, and returns the curve.
costs::Curve fit_and_keep(costs::Profile& profile, const std::string& name,
                          std::vector<costs::Sample> samples);

/// Seconds per additional x between the first and the last sample, the smallest and the largest.
double slope(const std::vector<costs::Sample>& samples,
             double costs::Sample::*time = &costs::Sample::median_s);
/// Bytes per second of transfers by size. io::RunError that names `what` was measured, if larger
/// ones did not take longer.
double bandwidth_of(const std::string& what, const std::vector<costs::Sample>& samples);

/// Nodes that a calibration must have which needs `least` of them: with processes, all of the
/// job's.
std::uint32_t job_nodes(const Options& options, std::uint32_t least);

/// How many iterations a calibration runs.
struct Repetitions {
  int warmups;
  int iterations;
};

/// Replays a calibration, without verification (its graphs are no synchronisation). All processes
/// of a job get the same result. `meter` is that of replay::ReplayOptions.
replay::ReplayResult run(const Calibration& calibration, const Options& options,
                         const Repetitions& repetitions, const std::function<double()>& meter = {});
/// As often as the effort says.
Repetitions usual(const Options& options);

/// The rank that measures what is one rank's alone: this process's, or the first of its threads.
int own_rank(const Options& options);

/// Waits for the other processes of a job, if there are any. It is called between measurements that
/// each rank makes alone, so that ranks with a slower device keep the others waiting for at most
/// one measurement, which must take less than `timeout_s`.
void keep_step(const Options& options);

/// Calls `body` as every rank of the job that measures, with an endpoint for control: of this
/// process's rank, or of all, on threads of their own. Rethrows what one of them throws.
void on_all_ranks(const Options& options, const std::function<void(transport::Endpoint&)>& body);

}  // namespace hipress::profiler
