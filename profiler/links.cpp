#include "profiler/links.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

#include "job/gather.hpp"
#include "profiler/core_meter.hpp"
#include "profiler/sampling.hpp"
#include "profiler/shard_collectives.hpp"
#include "profiler/timing.hpp"
#include "runtime/scheduling.hpp"

namespace hipress::profiler {
namespace {

constexpr std::int64_t kSmall = 64;  // elements of a message that consists of overhead only
/// Elements per message of the stream that measures the overhead of a message.
constexpr std::int64_t kMedium = 1 << 10;
constexpr std::uint32_t kFewMessages = 100, kManyMessages = 400;
/// Number of elements of the largest message, if the link carries it within kLongest_s.
constexpr std::int64_t kLargest = 1 << 22;
constexpr double kLongest_s = 0.2;
/// kLargest between GPUs, which transfer megabytes in the time of a launch.
constexpr std::int64_t kLargestBetweenGpus = 1 << 24;

std::int64_t message_bytes_of(std::int64_t elements) {
  return elements * static_cast<std::int64_t>(sizeof(float));
}

/// Three message sizes in elements, a factor of 4 apart. The slope over them is the bandwidth.
struct Sizes {
  std::int64_t largest = kLargest;
  std::vector<std::int64_t> all() const { return {largest / 16, largest / 4, largest}; }
};

/// Repetitions for bandwidths: enough that disturbed iterations do not matter.
constexpr Repetitions kMany{.warmups = 3, .iterations = 9};

/// Samples a calibration: seconds of an iteration, divided by `parts`. Adds its iterations to
/// `varies`.
costs::Sample sample(const Options& options, const Calibration& calibration, std::int64_t elements,
                     double parts, const Repetitions& repetitions,
                     std::initializer_list<Variation*> varies = {}) {
  std::vector<double> seconds = run(calibration, options, repetitions).iteration_s;
  for (double& value : seconds) value /= parts;
  for (Variation* const variation : varies) variation->add(seconds);
  return summarise(message_bytes_of(elements), std::move(seconds));
}

/// Samples one message in each of `pairs` at once, by size.
std::vector<costs::Sample> sample_streams(const Options& options, std::uint32_t nodes,
                                          const std::vector<Pair>& pairs, const Sizes& sizes,
                                          const Repetitions& repetitions,
                                          std::initializer_list<Variation*> varies) {
  std::vector<costs::Sample> samples;
  for (const std::int64_t elements : sizes.all())
    samples.push_back(
        sample(options, streams(nodes, pairs, elements, 1), elements, 1, repetitions, varies));
  return samples;
}

/// Ranks between which a link is measured: on two machines if there are several, since most links
/// are then between machines, and slower than within one.
Pair far_pair(const Hosts& hosts) { return {0, hosts.far()}; }

/// Chooses message sizes: as large as possible within kLongest_s per message.
Sizes choose_sizes(const Options& options, Pair pair) {
  const std::uint32_t nodes = job_nodes(options, 2);
  Sizes sizes;
  const bool full = options.effort == Effort::kFull;
  if (options.nccl != nullptr && full) sizes.largest = kLargestBetweenGpus;
  constexpr std::int64_t kProbe = 1 << 18;
  const double probe_s =
      sample(options, streams(nodes, {pair}, kProbe, 1), kProbe, 1, usual(options)).median_s /
      kProbe;
  while (sizes.largest > kProbe / 4 && static_cast<double>(sizes.largest) * probe_s > kLongest_s)
    sizes.largest /= 2;
  return sizes;
}

/// Measures the time of a hop by size, in a ping-pong without other traffic.
std::vector<costs::Sample> measure_hops(const Options& options, Pair pair, const Sizes& sizes,
                                        Variations& variations) {
  const std::uint32_t nodes = job_nodes(options, 2);
  const bool slow = sizes.largest < kLargest;
  std::vector<costs::Sample> samples;
  const auto add = [&](std::int64_t elements, std::uint32_t hops,
                       std::initializer_list<Variation*> varies) {
    samples.push_back(sample(options, ping_pong(nodes, elements, hops, OnArrival::kNothing, pair),
                             elements, hops, kMany, varies));
  };
  for (const std::int64_t elements : {kSmall, std::int64_t{1} << 12}) add(elements, 8, {});
  for (const std::int64_t elements : sizes.all())
    add(elements, slow ? 2 : 8, {&variations.links, &variations.iterations});
  return samples;
}

/// Measures a message's overhead on its ports, in seconds: the time that one more message adds to a
/// stream, minus the time of its bytes.
double measure_overhead(const Options& options, Pair pair, costs::Profile& profile) {
  const std::uint32_t nodes = job_nodes(options, 2);
  std::vector<costs::Sample> samples;
  for (const std::uint32_t messages : {kFewMessages, kManyMessages}) {
    costs::Sample stream =
        sample(options, streams(nodes, {pair}, kMedium, messages), kMedium, 1, kMany);
    stream.x *= messages;
    samples.push_back(stream);
  }
  const double bytes = static_cast<double>(message_bytes_of(kMedium));
  const double message_s = slope(samples) * bytes;
  fit_and_keep(profile, "link.stream", samples);
  return std::max(0.0, message_s - bytes / profile.link.bandwidth);
}

/// Estimates the burst in bytes that a traffic shaper lets an idle port send at once, from large
/// messages: they arrive sooner than a small message's hop plus the time of their bytes. 0 unless
/// all sizes agree.
std::int64_t measure_burst(const std::vector<costs::Sample>& hops, double hop_s, double bandwidth) {
  std::vector<double> saved_s;
  for (const costs::Sample& hop : hops) {
    saved_s.push_back(hop_s + static_cast<double>(hop.x) / bandwidth - hop.median_s);
  }
  std::ranges::sort(saved_s);
  constexpr double kAgree = 1.25;
  if (saved_s.front() <= 0.1 * hop_s || saved_s.back() > kAgree * saved_s.front()) return 0;
  return std::llround(saved_s[saved_s.size() / 2] * bandwidth);
}

/// Function that returns the core-seconds of each iteration of a calibration, over all hosts.
using CoreSeconds =
    std::function<std::vector<double>(const Calibration& calibration, const Repetitions&)>;

/// Core-seconds by run and iteration. Each run has new threads. Their placement by the system, and
/// thus their cost, varies more between runs than between iterations.
using Runs = std::vector<std::vector<double>>;
constexpr Repetitions kOfARun{.warmups = 1, .iterations = 3};

/// Core-seconds after which a measurement starts no further run.
double enough_core_s(const Options& options) { return options.effort == Effort::kQuick ? 8 : 60; }

double total_s(const std::vector<double>& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

std::vector<double> medians_of(const Runs& runs) {
  std::vector<double> medians;
  for (const std::vector<double>& values : runs) medians.push_back(median_of(values));
  return medians;
}

/// Measures the core-seconds of a message besides its bytes, as the time that sending adds to the
/// same coding without messages. Codec threads are busy, and other threads wake up for a few
/// messages at a time; in a long stream a message would cost a fraction of that. Messages are tiny,
/// so cores are the bottleneck even on slow links.
double measure_message_cores(const Options& options, const CoreSeconds& core_seconds,
                             const costs::Profile& profile, Variations& variations) {
  constexpr std::uint32_t kRounds = 200;
  const auto calibration = [&](Messages messages) {
    return exchange(options.nodes, "dgc", {kSmall, std::int64_t{1} << 15}, kRounds, messages);
  };
  const Calibration sent = calibration(Messages::kSent), kept = calibration(Messages::kKept);
  constexpr int kLeast = 8;
  Runs with, without;
  double spent_s = 0;
  // Alternates between `sent` and `kept`, since a machine's speed varies.
  for (int i = 0; i < options.exchanges && (i < kLeast || spent_s < enough_core_s(options)); ++i) {
    with.push_back(core_seconds(sent, kOfARun));
    without.push_back(core_seconds(kept, kOfARun));
    spent_s += total_s(with.back()) + total_s(without.back());
  }
  for (const Runs* const runs : {&with, &without}) variations.runs.add(medians_of(*runs));
  double messages = 0, bytes = 0;
  for (casync::TaskId id = 0; id < sent.graph.tasks(); ++id) {
    if (sent.graph[id].kind != casync::Kind::kSend) continue;
    ++messages;
    bytes += static_cast<double>(sent.graph[id].amount);
  }
  const double added_s = summarise_passes(0, with).median_s - summarise_passes(0, without).median_s;
  return std::max(0.0, (added_s - profile.link.core_s_per_byte * bytes) / messages);
}

/// Measures the core-seconds of a byte in messages from all ranks to all ranks.
double measure_byte_cores(const Options& options, const CoreSeconds& core_seconds,
                          const Sizes& sizes, const std::string& series, costs::Profile& profile,
                          Variations& variations) {
  constexpr int kRuns = 10, kLeast = 5;
  const std::vector<Pair> pairs = all_pairs(options.nodes);
  std::vector<costs::Sample> samples;
  for (const std::int64_t elements : sizes.all()) {
    const auto bytes = message_bytes_of(elements) * static_cast<std::int64_t>(pairs.size());
    Runs runs;
    double spent_s = 0;
    for (int i = 0; i < kRuns && (i < kLeast || spent_s < enough_core_s(options)); ++i) {
      runs.push_back(core_seconds(streams(options.nodes, pairs, elements, 1), kOfARun));
      spent_s += total_s(runs.back());
    }
    samples.push_back(summarise_passes(bytes, runs));
    // Only the largest messages count here: for smaller ones, the core meter's noise would exceed
    // the variation between runs.
    if (elements == sizes.largest) variations.runs.add(medians_of(runs));
  }
  // Noise can make a tiny slope negative.
  const double per_byte_s = std::max(0.0, slope(samples));
  fit_and_keep(profile, series, samples);
  return per_byte_s;
}

/// Core-seconds of calibrations that keep `cores` cores busy: duration times `cores`.
CoreSeconds all_busy(const Options& options, double cores) {
  return [&options, cores](const Calibration& calibration, const Repetitions& times) {
    std::vector<double> seconds = run(calibration, options, times).iteration_s;
    for (double& value : seconds) value *= cores;
    return seconds;
  };
}

/// Measures the core time of bytes and messages if cores limit transfers, and are thus all busy.
void measure_cores(const Options& options, const Sizes& sizes, costs::Profile& profile,
                   Variations& variations) {
  costs::LinkCosts& link = profile.link;
  const CoreSeconds core_seconds = all_busy(options, profile.cores);
  link.core_s_per_byte =
      measure_byte_cores(options, core_seconds, sizes, kCoreSeries, profile, variations);
  link.core_s_per_message = measure_message_cores(options, core_seconds, profile, variations);
}

/// True if links, not cores, are taken to limit transfers: in jobs on several machines, and in jobs
/// that measure the network of one machine for an existing base.
bool limited_by_links(const Options& options, const Hosts& hosts) {
  return options.nccl == nullptr && options.endpoint != nullptr &&
         (options.base != nullptr || hosts.count() > 1);
}

/// Core-seconds of calibrations, measured by a CoreMeter on this rank's own cores, if it has any.
class Metered {
 public:
  Metered(const Options& options, const Hosts& hosts, CoreMeter::Leaves leaves)
      : options_(options) {
    if (hosts.own_cores().empty()) return;
    meter_.emplace(hosts.own_cores(), leaves);
    meter_->pause();
  }
  std::vector<double> operator()(const Calibration& calibration, const Repetitions& times) {
    constexpr double kMin_s = 1e-9;  // noise can make a tiny time negative
    const auto read = meter_ ? [this] { return read_meter(); } : std::function<double()>();
    std::vector<double> used_s = run(calibration, options_, times, read).metered;
    for (double& value : used_s) value = std::max(value, kMin_s);
    return used_s;
  }

 private:
  /// Called at the start and at the end of an iteration. Counting threads pause between iterations,
  /// where they would only get in the way.
  double read_meter() {
    within_ = !within_;
    if (within_) meter_->resume();
    const double used_s = meter_->used_s();
    if (!within_) meter_->pause();
    return used_s;
  }

  const Options& options_;
  std::optional<CoreMeter> meter_;
  bool within_ = false;  // between the two calls for an iteration
};

/// True if messages interrupt long codec tasks on every rank.
bool long_tasks_give_way(const Options& options) {
  const std::vector<int> possible =
      job::gather(*options.endpoint, static_cast<int>(runtime::ScopedYield::possible()));
  return std::ranges::all_of(possible, [](int on_rank) { return on_rank != 0; });
}

/// Measures the core time of transfers on links that limit them, with a CoreMeter. Core times from
/// loopback, where cores limit transfers, do not hold here: messages are further apart, and threads
/// wake up for fewer of them at a time.
void measure_paced_cores(const Options& options, const Hosts& hosts, const Sizes& sizes,
                         costs::Profile& profile, Variations& variations) {
  costs::LinkCosts& link = profile.link;
  {
    Metered metered(options, hosts, CoreMeter::Leaves::kAfterATurn);
    link.core_s_per_byte = measure_byte_cores(options, std::ref(metered), sizes, kPacedCoreSeries,
                                              profile, variations);
    // With at least one rank per core, codecs keep all cores busy, so core time is duration times
    // cores. A CoreMeter would measure the same, but add context switches.
    const double cores = profile.cores * hosts.count();
    link.core_s_per_message =
        options.nodes >= cores && !options.device
            ? measure_message_cores(options, all_busy(options, cores), profile, variations)
            : measure_message_cores(options, std::ref(metered), profile, variations);
  }
  link.core_factor_interrupting = 1;
  if (options.device || !long_tasks_give_way(options)) return;
  Metered interrupted(options, hosts, CoreMeter::Leaves::kForEveryMessage);
  const double per_byte_s =
      measure_byte_cores(options, std::ref(interrupted), sizes,
                         std::string(kPacedCoreSeries) + ".interrupting", profile, variations);
  if (link.core_s_per_byte > 0)
    link.core_factor_interrupting = std::max(1.0, per_byte_s / link.core_s_per_byte);
}

/// Measures bandwidth and burst of each direction while both are busy, as in a synchronisation,
/// where acknowledgements of one direction use bandwidth of the other. Raises the bandwidth of a
/// single direction to at least this bandwidth: if it is lower, its measurement was disturbed.
void measure_both_ways(const Options& options, const Hosts& hosts, const Sizes& sizes, double hop_s,
                       costs::Profile& profile, Variations& variations) {
  costs::LinkCosts& link = profile.link;
  link.bandwidth_both_ways = link.bandwidth;
  // On loopback the cores limit both directions, and their costs are already known.
  if (options.nccl == nullptr && !limited_by_links(options, hosts)) return;
  const Pair pair = far_pair(hosts), back{pair.to, pair.from};
  const auto samples = sample_streams(options, job_nodes(options, 2), {pair, back}, sizes, kMany,
                                      {&variations.links, &variations.iterations});
  fit_and_keep(profile, "link.both_ways", samples);
  link.bandwidth_both_ways = bandwidth_of("both directions at once", samples);
  link.bandwidth = std::max(link.bandwidth, link.bandwidth_both_ways);
  const std::int64_t burst = measure_burst(samples, hop_s, link.bandwidth_both_ways);
  if (burst > 0) link.burst_bytes = std::min(link.burst_bytes, burst);
}

/// Samples without a burst's credit, as in successive gathers: their times are `saved_s` longer.
std::vector<costs::Sample> without_burst(std::vector<costs::Sample> samples, double saved_s) {
  for (costs::Sample& sample : samples) {
    for (double* const time : {&sample.median_s, &sample.p10_s, &sample.p90_s}) *time += saved_s;
  }
  return samples;
}

/// Measures fan-in and fan-out. `saved_s` is the time that a burst saves on a port that has idled.
void measure_gathers(const Options& options, const Progress& progress, const Sizes& large,
                     double saved_s, costs::Profile& profile, Variations& variations) {
  const Sizes sizes = large.largest < kLargest ? Sizes{large.largest / 4} : large;
  for (std::uint32_t nodes = 2; nodes <= options.nodes; ++nodes) {
    const std::uint32_t all = job_nodes(options, nodes);
    const std::string ranks = std::to_string(nodes);
    progress("fan-in and fan-out of " + ranks + " ranks");
    const auto measure = [&](const std::string& name, const std::vector<Pair>& pairs) {
      return fit_and_keep(profile, name + ranks,
                          without_burst(sample_streams(options, all, pairs, sizes, usual(options),
                                                       {&variations.iterations}),
                                        saved_s));
    };
    profile.fan_in[static_cast<int>(nodes)] = measure("fan_in.", fan_in(nodes));
    profile.fan_out[static_cast<int>(nodes)] = measure("fan_out.", fan_out(nodes));
  }
}

/// Sizes in elements at which the library's collectives are measured.
std::vector<std::int64_t> collective_sizes(const Sizes& large) {
  std::vector<std::int64_t> sizes = {kSmall, std::int64_t{1} << 14};
  for (const std::int64_t elements : large.all()) {
    if (elements > sizes.back()) sizes.push_back(elements);
  }
  return sizes;
}

/// Sizes for collectives of shards: collective_sizes(), and one more between sizes a factor of 4
/// apart, since gloo's collectives take twice as long per byte above some size.
std::vector<std::int64_t> shard_sizes(const Sizes& large) {
  std::vector<std::int64_t> sizes;
  for (const std::int64_t elements : collective_sizes(large)) {
    if (!sizes.empty() && elements == 4 * sizes.back()) sizes.push_back(2 * sizes.back());
    sizes.push_back(elements);
  }
  return sizes;
}

/// Measures the time of the library's all-reduce by bytes on each rank. Processes of a job measure
/// it only among all ranks; threads measure every number of ranks.
void measure_all_reduces(const Options& options, const Progress& progress,
                         const std::vector<std::int64_t>& sizes, costs::Profile& profile) {
  constexpr std::uint32_t kCount = 4;
  for (std::uint32_t nodes = job_nodes(options, 2); nodes <= options.nodes; ++nodes) {
    const std::string ranks = std::to_string(nodes);
    progress("all-reduce of " + ranks + " ranks");
    std::vector<costs::Sample> samples;
    for (const std::int64_t elements : sizes)
      samples.push_back(
          sample(options, all_reduces(nodes, elements, kCount), elements, kCount, usual(options)));
    profile.all_reduce[static_cast<int>(nodes)] =
        fit_and_keep(profile, "all_reduce." + ranks, samples);
  }
}

}  // namespace

void measure_transfer_cores(const Options& options, const Hosts& hosts, const Progress& progress,
                            costs::Profile& profile, Variations& variations) {
  const Sizes sizes = choose_sizes(options, far_pair(hosts));
  progress("cores, all ranks to all ranks");
  measure_paced_cores(options, hosts, sizes, profile, variations);
}

void measure_links(const Options& options, const Hosts& hosts, const Progress& progress,
                   costs::Profile& profile, Variations& variations) {
  costs::LinkCosts& link = profile.link;
  progress("one message at a time");
  const Pair pair = far_pair(hosts);
  const Sizes sizes = choose_sizes(options, pair);
  const std::vector<costs::Sample> hops = measure_hops(options, pair, sizes, variations);
  const std::vector<costs::Sample> large(hops.end() - 3, hops.end());
  const double hop_s = hops.front().median_s;
  link.bandwidth = bandwidth_of("one message at a time", large);
  fit_and_keep(profile, "link.hop", hops);

  progress("many messages");
  link.overhead_s = measure_overhead(options, pair, profile);
  link.burst_bytes = measure_burst(large, hop_s, link.bandwidth);
  const bool paced = limited_by_links(options, hosts);
  if (paced && profile.cores > 0) {
    progress("cores, all ranks to all ranks");
    measure_paced_cores(options, hosts, sizes, profile, variations);
  } else if (!paced && options.base == nullptr && options.nccl == nullptr) {
    progress("all ranks to all ranks");
    measure_cores(options, sizes, profile, variations);
  }
  const double saved_s = static_cast<double>(link.burst_bytes) / link.bandwidth;
  measure_both_ways(options, hosts, sizes, hop_s, profile, variations);
  // A small message's hop takes latency_s and the time for which it keeps its port busy. Within a
  // burst it occupies no port, and the core time of one end counts instead.
  const double busy_s = link.burst_bytes > 0 ? link.core_s_per_message / 2 : link.overhead_s;
  link.latency_s = std::max(0.0, hop_s - busy_s);
  measure_gathers(options, progress, sizes, saved_s, profile, variations);
  measure_all_reduces(options, progress, collective_sizes(sizes), profile);
  measure_shard_collectives(options, progress, shard_sizes(sizes), profile);
}

}  // namespace hipress::profiler
