#include "profiler/device_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "io/error.hpp"
#include "job/gather.hpp"
#include "kernels/codec/codec.hpp"
#include "profiler/device_slices.hpp"
#include "profiler/device_timer.hpp"
#include "profiler/sampling.hpp"
#include "profiler/stages.hpp"
#include "replay/inputs.hpp"

namespace hipress::profiler {

using runtime::Device;
using runtime::Stream;

StoppingRule stopping_rule(Effort effort) {
  if (effort == Effort::kFull) return {};
  return {.warmup_most = 30, .precision = 0.03, .most = 60, .budget_s = 0.1};
}

namespace {

std::vector<std::int64_t> kernel_sizes(Effort effort) {
  std::vector<std::int64_t> all;
  const bool quick = effort == Effort::kQuick;
  for (int exponent = 10; exponent <= (quick ? 26 : 28); exponent += quick ? 4 : 1) {
    all.push_back(std::int64_t{1} << exponent);
  }
  return all;
}

/// Number of slices that are coded in turn, so that they are not cached: 1 to 256, with about 2^26
/// elements (quick: 2^24) in total.
int slices_of(std::int64_t elements, Effort effort) {
  const std::int64_t cold = effort == Effort::kQuick ? 1 << 24 : 1 << 26;
  return static_cast<int>(std::clamp<std::int64_t>(cold / elements, 1, 256));
}

/// Slice sizes that fit into a device's memory, and the most bytes that slices of one size take.
struct Room {
  std::vector<std::int64_t> sizes;
  std::int64_t bytes = 0;
};

Room room_for(Device& device, const kernels::Codec& codec, const Options& options) {
  Room room;
  const std::int64_t free = device.memory().free;
  for (const std::int64_t elements : kernel_sizes(options.effort)) {
    const std::int64_t bytes =
        DeviceSlices::bytes(codec, elements, slices_of(elements, options.effort));
    // An eighth of the memory is left for the codec's temporary data.
    if (bytes > free - free / 8) break;
    room.sizes.push_back(elements);
    room.bytes = std::max(room.bytes, bytes);
  }
  if (room.sizes.empty()) {
    throw io::RunError(fmt::format(
        "{} bytes of GPU memory are free: not enough to measure anything; end what else uses it",
        free));
  }
  if (options.endpoint != nullptr) {
    // All ranks must measure the same sizes to stay in step.
    const auto all = job::gather(*options.endpoint, room.sizes.size());
    room.sizes.resize(*std::ranges::min_element(all));
  }
  return room;
}

constexpr int kBurst = 8;

costs::Sample sample(Device& device, const Options& options, std::int64_t x,
                     const std::function<void(Stream)>& work) {
  DeviceTimer timer(device, options.timeout_s);
  constexpr Stream kStream = Stream::kOwnCodec;
  const Timing timing = measure_until(stopping_rule(options.effort), [&] {
    return timer.burst(kStream, kBurst, [&](int) { work(kStream); });
  });
  keep_step(options);
  return summarise(x, timing.seconds);
}

double measure_copy(const Options& options) {
  const auto device = options.device(own_rank(options));
  // At least twice the last-level cache (at most 126 MB on present GPUs), if that much is free.
  const std::int64_t most = std::int64_t{1} << (options.effort == Effort::kQuick ? 28 : 30);
  const std::int64_t bytes = std::min(most, device->memory().free / 4);
  std::byte* const from = device->allocate(bytes);
  std::byte* const to = device->allocate(bytes);
  device->clear(from, bytes, Stream::kOwnCodec);
  const costs::Sample copies = sample(
      *device, options, bytes, [&](Stream stream) { device->copy(to, from, bytes, stream); });
  return 2 * static_cast<double>(bytes) / copies.median_s;
}

/// Points whose slices fit into all devices' memory. Raises `most_bytes` to their largest size.
std::vector<StagePoint> fitting(Device& device, const CodecOfRank& codec_of, const StageRule& rule,
                                const Options& options, std::int64_t& most_bytes) {
  std::vector<StagePoint> points;
  const std::int64_t free = device.memory().free;
  for (const StagePoint& point : stage_points(codec_of, rule)) {
    const std::int64_t bytes =
        StagedSlices::bytes(*codec_of(point.rank), point.shape, slices_in_turn(point, rule));
    std::vector<char> fits = {bytes <= free - free / 8};
    if (options.endpoint != nullptr) fits = job::gather(*options.endpoint, fits.front());
    if (std::ranges::count(fits, 0) > 0) continue;
    points.push_back(point);
    most_bytes = std::max(most_bytes, bytes);
  }
  return points;
}

/// Fills slices with a replay's gradients, zero states and complete factors.
void fill(Device& device, const StagedSlices& slices, std::byte* arena, std::int64_t bytes) {
  constexpr Stream kStream = Stream::kOwnCodec;
  std::vector<float> gradient(static_cast<std::size_t>(slices.elements()));
  replay::fill_inputs({.seed = 1}, 0, gradient);
  device.clear(arena, bytes, kStream);
  for (int slice = 0; slice < slices.count(); ++slice) {
    device.copy(slices.values(slice), gradient.data(), bytes_of(slices.elements()), kStream);
    for (int work = 0; work < slices.works(); ++work)
      slices.run(work, slice, 0, device.handle(kStream));
  }
  device.drain();  // `gradient` is about to be destroyed
}

/// Samples each work of a point, as half the time of two steps: codecs may alternate between steps.
std::vector<costs::Sample> sample_point(Device& device, const Options& options,
                                        const StagedSlices& slices) {
  std::vector<costs::Sample> samples;
  int turn = 0;
  for (int work = 0; work < slices.works(); ++work) {
    costs::Sample both = sample(device, options, slices.elements(), [&](Stream stream) {
      const int slice = turn++ % slices.count();
      for (const std::uint64_t step : {1, 2}) slices.run(work, slice, step, device.handle(stream));
    });
    for (double* const time : {&both.median_s, &both.p10_s, &both.p90_s}) *time /= 2;
    samples.push_back(both);
  }
  return samples;
}

void measure_staged_codec(const std::string& algorithm, const Options& options,
                          costs::Profile& profile) {
  const auto device = options.device(own_rank(options));
  StageRule rule = stage_rule(options.effort);
  rule.ranks = ranks_of(algorithm, rule);
  rule.cold = options.effort == Effort::kQuick ? 1 << 24 : 1 << 26;
  const CodecOfRank codec_of = [&](int rank) {
    return device->codec(text_of_rank(algorithm, rank));
  };
  std::int64_t bytes = 0;
  const std::vector<StagePoint> points = fitting(*device, codec_of, rule, options, bytes);
  std::byte* const arena = device->allocate(bytes);
  std::vector<std::vector<costs::Sample>> samples;
  for (const StagePoint& point : points) {
    const auto codec = codec_of(point.rank);
    const StagedSlices slices(*codec, point.shape, slices_in_turn(point, rule), arena);
    fill(*device, slices, arena, StagedSlices::bytes(*codec, point.shape, slices.count()));
    samples.push_back(sample_point(*device, options, slices));
  }
  const std::string row = costs::with_rank(algorithm, {});
  profile.codecs[row] = fit_and_keep_stages(row, points, samples, profile);
}

void measure_codec(const std::string& algorithm, const Options& options, costs::Profile& profile) {
  const auto device = options.device(own_rank(options));
  const auto codec = device->codec(algorithm);
  if (codec->traits().additive) return measure_staged_codec(algorithm, options, profile);
  const Room room = room_for(*device, *codec, options);
  std::byte* const arena = device->allocate(room.bytes);
  std::vector<costs::Sample> encode, decode, decode_add;
  for (const std::int64_t elements : room.sizes) {
    DeviceSlices slices(*device, arena, *codec, elements, slices_of(elements, options.effort));
    const auto add = [&](std::vector<costs::Sample>& to, const std::function<void(Stream)>& work) {
      to.push_back(sample(*device, options, elements, work));
    };
    add(encode, [&](Stream stream) { slices.encode(stream); });
    add(decode, [&](Stream s) { slices.decode(kernels::DecodeMode::kOverwrite, s); });
    add(decode_add, [&](Stream s) { slices.decode(kernels::DecodeMode::kAdd, s); });
  }
  profile.codecs[algorithm] = {
      .encode = fit_and_keep(profile, algorithm + ".encode", std::move(encode)),
      .decode = fit_and_keep(profile, algorithm + ".decode", std::move(decode)),
      .decode_add = fit_and_keep(profile, algorithm + ".decode_add", std::move(decode_add))};
}

void measure_merge(const Options& options, costs::Profile& profile) {
  const auto device = options.device(own_rank(options));
  const auto codec = device->codec("bf16");  // any codec will do
  const Room room = room_for(*device, *codec, options);
  std::byte* const arena = device->allocate(room.bytes);
  std::vector<costs::Sample> merges;
  for (const std::int64_t elements : room.sizes) {
    DeviceSlices slices(*device, arena, *codec, elements, slices_of(elements, options.effort));
    merges.push_back(
        sample(*device, options, elements, [&](Stream stream) { slices.merge(stream); }));
  }
  profile.merge = fit_and_keep(profile, "merge", std::move(merges));
}

}  // namespace

void measure_device_kernels(const Options& options, const Progress& progress,
                            costs::Profile& profile) {
  progress("the device's copy bandwidth");
  profile.memory_bandwidth = profile.kernels_measured_at = measure_copy(options);
  for (const std::string& algorithm : options.algorithms) {
    progress("codec " + algorithm);
    measure_codec(algorithm, options, profile);
  }
  progress("merge");
  measure_merge(options, profile);
}

}  // namespace hipress::profiler
