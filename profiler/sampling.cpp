#include "profiler/sampling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/error.hpp"
#include "io/quantity.hpp"
#include "job/connect.hpp"
#include "job/gather.hpp"
#include "profiler/timing.hpp"

namespace hipress::profiler {
namespace {

/// Copies rank 0's timeline to all ranks. Collective.
void share(transport::Endpoint& endpoint, traces::Timeline& timeline) {
  for (auto* const times : {&timeline.start, &timeline.end}) {
    const std::span<const casync::Picoseconds> mine(*times);
    *times = std::move(job::gather(endpoint, mine).front());
  }
}

/// Cap on times in a mean, as a multiple of their median.
constexpr double kMaxMedians = 2;

std::vector<double> all_of(const std::vector<std::vector<double>>& series) {
  std::vector<double> all;
  for (const std::vector<double>& seconds : series)
    all.insert(all.end(), seconds.begin(), seconds.end());
  return all;
}

double capped_sum(const std::vector<double>& seconds, double most_s) {
  double sum_s = 0;
  for (const double value : seconds) sum_s += std::min(value, most_s);
  return sum_s;
}

}  // namespace

costs::Sample summarise(std::int64_t x, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return {.x = x,
          .median_s = quantile(seconds, 0.5),
          .p10_s = quantile(seconds, 0.1),
          .p90_s = quantile(seconds, 0.9),
          .repetitions = static_cast<int>(seconds.size())};
}

costs::Sample summarise_passes(std::int64_t x, const std::vector<std::vector<double>>& passes) {
  double medians_s = 0;
  for (const std::vector<double>& seconds : passes) medians_s += summarise(x, seconds).median_s;
  costs::Sample sample = summarise(x, all_of(passes));
  sample.median_s = medians_s / static_cast<double>(passes.size());
  return sample;
}

costs::Sample summarise_iterations(std::int64_t x,
                                   const std::vector<std::vector<double>>& iterations) {
  costs::Sample sample = summarise(x, all_of(iterations));
  std::vector<double> means_s;
  for (const std::vector<double>& seconds : iterations) {
    means_s.push_back(capped_sum(seconds, kMaxMedians * sample.median_s) /
                      static_cast<double>(seconds.size()));
  }
  sample.mean_s = median_of(std::move(means_s));
  return sample;
}

void Interruptions::add(const std::vector<std::vector<double>>& iterations) {
  const std::vector<double> all = all_of(iterations);
  const double most_s = kMaxMedians * median_of(all);
  with_s_ += capped_sum(all, most_s + kLongest_s);
  without_s_ += capped_sum(all, most_s);
}

costs::Curve fit_and_keep(costs::Profile& profile, const std::string& name,
                          std::vector<costs::Sample> samples) {
  const costs::Fit fit = costs::fit_curve(samples);
  profile.samples.push_back({.name = name,
                             .samples = std::move(samples),
                             .median_relative_residual = fit.median_relative_residual,
                             .max_relative_residual = fit.max_relative_residual});
  return fit.curve;
}

double slope(const std::vector<costs::Sample>& samples, double costs::Sample::*time) {
  const costs::Sample& least = samples.front();
  const costs::Sample& most = samples.back();
  return (most.*time - least.*time) / static_cast<double>(most.x - least.x);
}

double bandwidth_of(const std::string& what, const std::vector<costs::Sample>& samples) {
  const double s_per_byte = slope(samples);
  if (s_per_byte > 0) return 1 / s_per_byte;
  throw io::RunError(fmt::format(
      "links, {}: {} took {}, and {} no longer, {}, which tells no bandwidth: measure again "
      "while nothing else runs, without `quick`",
      what, io::format_size(samples.front().x), io::format_duration(samples.front().median_s),
      io::format_size(samples.back().x), io::format_duration(samples.back().median_s)));
}

std::uint32_t job_nodes(const Options& options, std::uint32_t least) {
  return options.endpoint != nullptr ? options.nodes : least;
}

Repetitions usual(const Options& options) {
  return {.warmups = 3, .iterations = options.effort == Effort::kQuick ? 3 : 7};
}

replay::ReplayResult run(const Calibration& calibration, const Options& options,
                         const Repetitions& repetitions, const std::function<double()>& meter) {
  replay::ReplayOptions replay;
  replay.meter = meter;
  replay.warmup = repetitions.warmups;
  replay.iterations = repetitions.iterations;
  replay.verify = false;
  replay.timeout_s = options.timeout_s;
  replay.device = options.device;
  replay.nccl = options.nccl;
  replay.every_timeline = true;
  if (options.endpoint == nullptr) {
    return replay::replay_threads(options.transport, calibration.model, calibration.plan,
                                  calibration.graph, replay);
  }
  replay::ReplayResult result = replay::replay(*options.endpoint, calibration.model,
                                               calibration.plan, calibration.graph, replay);
  for (traces::Timeline& timeline : result.timelines) share(*options.endpoint, timeline);
  return result;
}

int own_rank(const Options& options) {
  return options.endpoint != nullptr ? options.endpoint->rank() : 0;
}

void keep_step(const Options& options) {
  if (options.endpoint != nullptr) options.endpoint->all_gather("step");
}

void on_all_ranks(const Options& options, const std::function<void(transport::Endpoint&)>& body) {
  if (options.endpoint != nullptr) return body(*options.endpoint);
  job::run_thread_ranks(options.transport, static_cast<int>(options.nodes), options.timeout_s,
                        body);
}

}  // namespace hipress::profiler
