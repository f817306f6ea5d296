#include <algorithm>
#include <numeric>
#include <thread>

#include "profiler/sampling.hpp"

namespace hipress::profiler {
namespace {

constexpr std::uint32_t kHops = 8;
constexpr std::int64_t kSmall = 64;  // elements; the message is all overhead
constexpr std::int64_t kLarge[] = {1 << 18, 1 << 20,
                                   1 << 22};  // elements; bandwidth is a slope over these
constexpr std::uint32_t kManySmall = 200;

constexpr double bytes_of(std::int64_t elements) {
  return static_cast<double>(elements) * sizeof(float);
}

/// Iteration time of `messages` independent messages per pair, by size in bytes.
std::vector<costs::Sample> sample_streams(const Options& options, std::uint32_t nodes,
                                          const std::vector<Pair>& pairs, std::uint32_t messages) {
  std::vector<costs::Sample> samples;
  for (const std::int64_t elements : kLarge) {
    const executor::ReplayResult result = run(streams(nodes, pairs, elements, messages), options);
    samples.push_back(
        summarise(elements * static_cast<std::int64_t>(sizeof(float)), result.iteration_s));
  }
  return samples;
}

/// Seconds per additional byte between the smallest and the largest sample.
double slope(const std::vector<costs::Sample>& samples) {
  const costs::Sample& least = samples.front();
  const costs::Sample& most = samples.back();
  return (most.median_s - least.median_s) / static_cast<double>(most.x - least.x);
}

/// One way, nothing else moving: hop time A + B·x of a ping-pong.
costs::Curve measure_hops(const Options& options, costs::Profile& profile) {
  std::vector<costs::Sample> samples;
  for (const std::int64_t elements :
       {kSmall, std::int64_t{1} << 12, std::int64_t{1} << 16, kLarge[0], kLarge[1], kLarge[2]}) {
    const executor::ReplayResult result =
        run(ping_pong(elements, kHops, OnArrival::kNothing), options);
    std::vector<double> hop_s;
    for (const double seconds : result.iteration_s) hop_s.push_back(seconds / kHops);
    samples.push_back(summarise(elements * static_cast<std::int64_t>(sizeof(float)), hop_s));
  }
  profile.link.bandwidth = 1 / slope({samples[3], samples[4], samples[5]});
  return fit_and_keep(profile, "link.hop", samples);
}

/// Everybody sends to everybody, which keeps all cores busy: what a byte and a message cost of
/// them.
void measure_cores(const Options& options, costs::Profile& profile) {
  const std::uint32_t nodes = options.nodes;
  const std::vector<Pair> pairs = all_pairs(nodes);
  const auto samples = sample_streams(options, nodes, pairs, 1);
  const double cores = profile.cores;
  profile.link.core_s_per_byte = cores * slope(samples) / static_cast<double>(pairs.size());
  fit_and_keep(profile, "link.all_to_all", samples);

  const executor::ReplayResult small =
      run(streams(nodes, pairs, kSmall, kManySmall / nodes), options);
  const double messages = static_cast<double>(pairs.size()) * (kManySmall / nodes);
  profile.link.core_s_per_message = cores * median_s(small) / messages;
}

void measure_gathers(const Options& options, const Progress& progress, costs::Profile& profile) {
  for (std::uint32_t nodes = 2; nodes <= options.nodes; ++nodes) {
    const std::string ranks = std::to_string(nodes);
    progress("fan-in and fan-out of " + ranks + " ranks");
    profile.fan_in[static_cast<int>(nodes)] =
        fit_and_keep(profile, "fan_in." + ranks, sample_streams(options, nodes, fan_in(nodes), 1));
    profile.fan_out[static_cast<int>(nodes)] = fit_and_keep(
        profile, "fan_out." + ranks, sample_streams(options, nodes, fan_out(nodes), 1));
  }
}

/// The library's own all-reduce: time of one, by bytes on each rank.
void measure_all_reduces(const Options& options, const Progress& progress,
                         costs::Profile& profile) {
  constexpr std::uint32_t kCount = 4;
  for (std::uint32_t nodes = 2; nodes <= options.nodes; ++nodes) {
    const std::string ranks = std::to_string(nodes);
    progress("all-reduce of " + ranks + " ranks");
    std::vector<costs::Sample> samples;
    for (const std::int64_t elements :
         {kSmall, std::int64_t{1} << 14, kLarge[0], kLarge[1], kLarge[2]}) {
      const executor::ReplayResult result = run(all_reduces(nodes, elements, kCount), options);
      std::vector<double> one_s;
      for (const double seconds : result.iteration_s) one_s.push_back(seconds / kCount);
      samples.push_back(
          summarise(elements * static_cast<std::int64_t>(sizeof(float)), std::move(one_s)));
    }
    profile.all_reduce[static_cast<int>(nodes)] =
        fit_and_keep(profile, "all_reduce." + ranks, samples);
  }
}

}  // namespace

void measure_links(const Options& options, const Progress& progress, costs::Profile& profile) {
  progress("one message at a time");
  const costs::Curve hop = measure_hops(options, profile);

  progress("many messages");
  const executor::ReplayResult stream = run(streams(2, {{0, 1}}, kSmall, kManySmall), options);
  profile.link.overhead_s = median_s(stream) / kManySmall;
  profile.link.latency_s = std::max(0.0, hop(0) - profile.link.overhead_s);

  progress("all ranks to all ranks");
  measure_cores(options, profile);
  measure_gathers(options, progress, profile);
  measure_all_reduces(options, progress, profile);

  // On one host both directions are limited by the cores, which are counted already.
  profile.link.bandwidth_both_ways = profile.link.bandwidth;
}

}  // namespace hipress::profiler
