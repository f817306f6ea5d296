#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "kernels/codec.hpp"
#include "profiler/sampling.hpp"

namespace hipress::profiler {
namespace {

using casync::Kind;
using casync::TaskId;

/// More than any cache of a core, so that what is decoded was written long ago.
constexpr std::int64_t kColdElements = std::int64_t{12} << 20;
constexpr std::uint32_t kMostSlices = 256;

/// In the first iterations states are unusual, and so is what selectors remember of them: with more
/// than a residual (DGC) it takes some until an encode is as fast as it will be.
Repetitions per_pass(const std::string& algorithm) {
  const bool slow_to_settle = kernels::make_codec(algorithm)->traits().state_arrays > 1;
  return {.warmups = slow_to_settle ? 8 : 2, .iterations = 2};
}

/// Powers of two up to 2^26 elements: all of them, since codecs change their ways (a selector's
/// sample is smaller than larger slices), and data leaves one cache after the other. Every other
/// one up to 2^24 when it must be quick.
std::vector<std::int64_t> sizes(Effort effort) {
  const bool quick = effort == Effort::kQuick;
  std::vector<std::int64_t> all;
  for (int exponent = 8; exponent <= (quick ? 24 : 26); exponent += quick ? 2 : 1) {
    all.push_back(std::int64_t{1} << exponent);
  }
  return all;
}

/// Sizes at which kernels are also timed while all cores run one: some of sizes(), of data that no
/// core's cache holds.
bool is_shared_size(std::int64_t elements) {
  const int exponent = std::bit_width(static_cast<std::uint64_t>(elements)) - 1;
  return exponent >= 16 && exponent % 4 == 0;
}

/// Times of one sort of task, by elements and pass.
class Series {
 public:
  void add(std::int64_t elements, std::vector<double> seconds) {
    passes_[elements].push_back(std::move(seconds));
  }
  std::vector<costs::Sample> samples() const {
    std::vector<costs::Sample> all;
    for (const auto& [elements, passes] : passes_)
      all.push_back(summarise_passes(elements, passes));
    return all;
  }

 private:
  std::map<std::int64_t, std::vector<std::vector<double>>> passes_;
};

struct CodecSeries {
  Series encode, decode, decode_add;
};

/// `ranks` ranks code slices of so many elements at the same time.
void sample_codec(const std::string& algorithm, std::int64_t elements, std::uint32_t ranks,
                  const Options& options, CodecSeries& series) {
  const auto slices = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(kColdElements / elements, 1, kMostSlices));
  const Calibration calibration =
      codec_calibration(job_nodes(options, ranks), algorithm, elements, slices, ranks);
  const executor::ReplayResult result = run(calibration, options, per_pass(algorithm));
  const auto add = [&](Series& to, casync::Kind kind, bool accumulates) {
    to.add(elements, durations(calibration.graph, result.timelines, [&](const casync::Task& task) {
             return task.kind == kind && ((task.flags & casync::kAccumulate) != 0) == accumulates;
           }));
  };
  add(series.encode, Kind::kEncode, false);
  add(series.decode, Kind::kDecode, false);
  add(series.decode_add, Kind::kDecode, true);
}

/// An algorithm's kernels, alone and while as many ranks as there are cores run them at once.
struct Kernels {
  CodecSeries alone, shared;
};

/// One right after the other, as the speed of a memory may change within seconds.
void sample_codec(const std::string& algorithm, std::uint32_t cores, const Options& options,
                  Kernels& kernels) {
  for (const std::int64_t elements : sizes(options.effort)) {
    sample_codec(algorithm, elements, 1, options, kernels.alone);
    if (cores > 1 && is_shared_size(elements)) {
      sample_codec(algorithm, elements, cores, options, kernels.shared);
    }
  }
}

/// The median over sizes; 0 if there is but one core.
double share_of(const Series& alone, const Series& shared, std::uint32_t cores) {
  std::vector<double> shares;
  for (const costs::Sample& together : shared.samples()) {
    for (const costs::Sample& sample : alone.samples()) {
      if (sample.x == together.x)
        shares.push_back(memory_share(sample.median_s, together.median_s, cores));
    }
  }
  return shares.empty() ? 0 : summarise(0, std::move(shares)).median_s;
}

void sample_merge(const Options& options, Series& series) {
  constexpr std::uint32_t kHops = 6;
  for (const std::int64_t elements : sizes(options.effort)) {
    const Calibration calibration =
        ping_pong(job_nodes(options, 2), elements, kHops, OnArrival::kMerge);
    const executor::ReplayResult result =
        run(calibration, options, {.warmups = 2, .iterations = 2});
    series.add(elements,
               durations(calibration.graph, result.timelines,
                         [](const casync::Task& task) { return task.kind == Kind::kMerge; }));
  }
}

}  // namespace

void measure_codecs(const Options& options, const Progress& progress, costs::Profile& profile) {
  const std::uint32_t cores = coding_cores(options);
  std::map<std::string, Kernels> codecs;
  Series merge;
  for (int pass = 1; pass <= options.passes; ++pass) {
    const std::string which =
        ", pass " + std::to_string(pass) + " of " + std::to_string(options.passes);
    for (const std::string& algorithm : options.algorithms) {
      progress("codec " + algorithm + which);
      sample_codec(algorithm, cores, options, codecs[algorithm]);
    }
    progress("merge" + which);
    sample_merge(options, merge);
  }
  for (const auto& [algorithm, kernels] : codecs) {
    const auto kernel = [&](const std::string& name, Series CodecSeries::*series) {
      const Series& alone = kernels.alone.*series;
      return costs::KernelCosts(fit_and_keep(profile, algorithm + "." + name, alone.samples()),
                                share_of(alone, kernels.shared.*series, cores));
    };
    profile.codecs[algorithm] = {.encode = kernel("encode", &CodecSeries::encode),
                                 .decode = kernel("decode", &CodecSeries::decode),
                                 .decode_add = kernel("decode_add", &CodecSeries::decode_add)};
  }
  profile.merge = fit_and_keep(profile, "merge", merge.samples());
}

}  // namespace hipress::profiler
