#include <algorithm>
#include <map>
#include <thread>

#include "profiler/sampling.hpp"

namespace hipress::profiler {
namespace {

using casync::Kind;
using casync::TaskId;

/// More than any cache of a core, so that what is decoded was written long ago.
constexpr std::int64_t kColdElements = std::int64_t{24} << 20;
constexpr std::uint32_t kMostSlices = 256;

/// Powers of two up to 2^24 or 2^26 elements: all of them, since codecs change their ways (a
/// selector's sample is smaller than larger slices), and data leaves one cache after the other.
std::vector<std::int64_t> sizes(Effort effort) {
  std::vector<std::int64_t> all;
  const int last = effort == Effort::kQuick ? 24 : 26;
  for (int exponent = 8; exponent <= last; ++exponent) all.push_back(std::int64_t{1} << exponent);
  return all;
}

/// Durations of the tasks that `wanted` accepts, in all iterations: one alone may be disturbed.
template <class Predicate>
std::vector<double> durations(const casync::TaskGraph& graph,
                              const std::vector<traces::Timeline>& timelines, Predicate wanted) {
  std::vector<double> seconds;
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    if (!wanted(graph[id])) continue;
    for (const traces::Timeline& timeline : timelines)
      seconds.push_back(casync::to_seconds(timeline.end[id] - timeline.start[id]));
  }
  return seconds;
}

struct CodecSamples {
  std::vector<costs::Sample> encode, decode, decode_add;
};

/// As many ranks as there are cores code at the same time: a synchronisation keeps all cores busy,
/// and they share the memory's bandwidth.
CodecSamples sample_codec(const std::string& algorithm, const Options& options) {
  const std::uint32_t ranks = std::clamp(std::thread::hardware_concurrency(), 1u, options.nodes);
  const std::uint32_t nodes = job_nodes(options, ranks);
  CodecSamples samples;
  for (const std::int64_t elements : sizes(options.effort)) {
    const auto slices = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(kColdElements / elements, 1, kMostSlices));
    const Calibration calibration = codec_calibration(nodes, algorithm, elements, slices, ranks);
    const executor::ReplayResult result = run(calibration, options);
    const auto sample = [&](auto wanted) {
      return summarise(elements, durations(calibration.graph, result.timelines, wanted));
    };
    const auto adds = [](const casync::Task& task) {
      return (task.flags & casync::kAccumulate) != 0;
    };
    samples.encode.push_back(
        sample([](const casync::Task& task) { return task.kind == Kind::kEncode; }));
    samples.decode.push_back(sample(
        [&](const casync::Task& task) { return task.kind == Kind::kDecode && !adds(task); }));
    samples.decode_add.push_back(
        sample([&](const casync::Task& task) { return task.kind == Kind::kDecode && adds(task); }));
  }
  return samples;
}

std::vector<costs::Sample> sample_merge(const Options& options) {
  std::vector<costs::Sample> samples;
  constexpr std::uint32_t kHops = 6;
  for (const std::int64_t elements : sizes(options.effort)) {
    const Calibration calibration =
        ping_pong(job_nodes(options, 2), elements, kHops, OnArrival::kMerge);
    const executor::ReplayResult result = run(calibration, options);
    samples.push_back(summarise(
        elements, durations(calibration.graph, result.timelines,
                            [](const casync::Task& task) { return task.kind == Kind::kMerge; })));
  }
  return samples;
}

}  // namespace

void measure_codecs(const Options& options, const Progress& progress, costs::Profile& profile) {
  for (const std::string& algorithm : options.algorithms) {
    progress("codec " + algorithm);
    const CodecSamples samples = sample_codec(algorithm, options);
    profile.codecs[algorithm] = {
        .encode = fit_and_keep(profile, algorithm + ".encode", samples.encode),
        .decode = fit_and_keep(profile, algorithm + ".decode", samples.decode),
        .decode_add = fit_and_keep(profile, algorithm + ".decode_add", samples.decode_add)};
  }
  progress("merge");
  profile.merge = fit_and_keep(profile, "merge", sample_merge(options));
}

}  // namespace hipress::profiler
