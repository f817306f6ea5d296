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
#include "transport/nccl.hpp"

namespace hipress::profiler {

using runtime::Device;
using runtime::Stream;

StoppingRule stopping_rule(Effort effort) {
  if (effort == Effort::kFull) return {};
  return {.warmup_most = 30, .precision = 0.03, .most = 60, .budget_s = 0.1};
}

namespace {

std::vector<std::int64_t> sizes(Effort effort) {
  std::vector<std::int64_t> all;
  const bool quick = effort == Effort::kQuick;
  for (int exponent = 10; exponent <= (quick ? 26 : 28); exponent += quick ? 4 : 1) {
    all.push_back(std::int64_t{1} << exponent);
  }
  return all;
}

/// As many as are more than the last cache of any GPU holds, but no more than that takes.
int slices_of(std::int64_t elements, Effort effort) {
  const std::int64_t cold = effort == Effort::kQuick ? 1 << 24 : 1 << 26;
  return static_cast<int>(std::clamp<std::int64_t>(cold / elements, 1, 256));
}

/// Sizes of which a device's memory holds slices, and room for all of one size.
struct Room {
  std::vector<std::int64_t> sizes;
  std::int64_t bytes = 0;
};

Room room_for(Device& device, const kernels::Codec& codec, const Options& options) {
  Room room;
  const std::int64_t free = device.memory().free;
  for (const std::int64_t elements : sizes(options.effort)) {
    const std::int64_t bytes =
        DeviceSlices::bytes(codec, elements, slices_of(elements, options.effort));
    // What is left is for the codec's temporary memory.
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
    // Who measured one more would leave the others' step.
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
  // Far more than a last cache holds, which is 126 MB on the largest GPUs.
  const std::int64_t most = std::int64_t{1} << (options.effort == Effort::kQuick ? 28 : 30);
  const std::int64_t bytes = std::min(most, device->memory().free / 4);
  std::byte* const from = device->allocate(bytes);
  std::byte* const to = device->allocate(bytes);
  device->clear(from, bytes, Stream::kOwnCodec);
  const costs::Sample copies = sample(
      *device, options, bytes, [&](Stream stream) { device->copy(to, from, bytes, stream); });
  return 2 * static_cast<double>(bytes) / copies.median_s;
}

/// What a device's memory holds slices of, of all that is to be measured; the same on all ranks.
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

/// Gradients as a replay has them, nothing kept from a step before, and whole factors.
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
  device.drain();  // `gradient` goes away
}

/// Of two steps at a time, since a codec may do something else every other step.
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
  const auto codec = device->codec("bf16");  // any: what a slice has besides its values
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

/// Something that a device does over and over.
struct Repeated {
  DeviceTimer::Lane once;
  int times = 1;
  DeviceTimer::Lane lane() const {
    DeviceTimer::Lane all = once;
    all.work = [this] {
      for (int i = 0; i < times; ++i) once.work();
    };
    return all;
  }
};

/// What moves bytes beside codecs and products.
struct Transfers {
  /// Enqueues on the outbound stream: sends the first `bytes` of `memory` and receives as many
  /// behind them.
  std::function<void(std::byte* memory, std::int64_t bytes)> exchange;
  /// Called while transfers are waited for, and when that takes too long: DeviceTimer::Lane's.
  std::function<void()> poll = {}, give_up = {};
  /// The least of all ranks that exchange, which do it as often and with as many bytes.
  std::function<std::int64_t(std::int64_t)> least = [](std::int64_t own) { return own; };
};

/// Times that works are repeated, so that each alone takes long enough to see the other.
void balance(DeviceTimer& timer, Effort effort, const Transfers& transfers,
             std::vector<Repeated*> works) {
  const double long_s = effort == Effort::kQuick ? 4e-3 : 20e-3;
  // A few launches each, all of which a stream must take without waiting.
  constexpr double kMaxTimes = 64;
  for (Repeated* const work : works) {
    timer.run(work->lane());
    const double once_s = std::max(1e-7, timer.together({work->lane()}));
    const double times = std::clamp(long_s / once_s, 1.0, kMaxTimes);
    work->times = static_cast<int>(transfers.least(static_cast<std::int64_t>(times)));
  }
}

double measure_pair(DeviceTimer& timer, const Repeated& first, const Repeated& second) {
  constexpr int kTrials = 7;
  std::vector<double> factors;
  for (int trial = 0; trial < kTrials; ++trial) {
    const double first_s = timer.together({first.lane()});
    const double second_s = timer.together({second.lane()});
    factors.push_back(
        overlap_factor(first_s, second_s, timer.together({first.lane(), second.lane()})));
  }
  return summarise(0, std::move(factors)).median_s;
}

/// The first that encodes a slice at a time, else one that every device has.
std::shared_ptr<const kernels::Codec> codec_beside_work(
    Device& device, const std::vector<std::string>& algorithms) {
  for (const std::string& algorithm : algorithms) {
    auto codec = device.codec(algorithm);
    if (!codec->traits().additive) return codec;
  }
  return device.codec("bf16");
}

constexpr int kOverlapSlices = 4;  // in turn: more than a cache holds

/// Elements of slices and messages: as many as asked for, or as the memory holds.
std::int64_t overlap_elements(Device& device, const kernels::Codec& codec,
                              const OverlapSizes& sizes) {
  const std::int64_t free = device.memory().free;
  std::int64_t elements = sizes.elements;
  const auto bytes = [&] {
    return DeviceSlices::bytes(codec, elements, kOverlapSlices) + 2 * bytes_of(elements) +
           3 * bytes_of(sizes.rows * sizes.rows);
  };
  while (elements > 1 && bytes() > free - free / 8) elements /= 2;
  return elements;
}

/// One rank's part.
costs::OverlapFactors overlap_on(Device& device, const Options& options,
                                 const Transfers& transfers) {
  const auto codec = codec_beside_work(device, options.algorithms);
  const std::int64_t n = options.overlap.rows;
  const std::int64_t elements = transfers.least(overlap_elements(device, *codec, options.overlap));
  std::byte* const arena = device.allocate(DeviceSlices::bytes(*codec, elements, kOverlapSlices));
  DeviceSlices slices(device, arena, *codec, elements, kOverlapSlices);
  const std::int64_t matrix = bytes_of(n * n), message = bytes_of(elements);
  auto* const matrices = reinterpret_cast<float*>(device.allocate(3 * matrix));
  device.clear(matrices, 3 * matrix, Stream::kOwnCodec);
  std::byte* const messages = device.allocate(2 * message);
  device.clear(messages, 2 * message, Stream::kOwnCodec);
  device.drain();

  DeviceTimer timer(device, options.timeout_s);
  Repeated product{{Stream::kArrivalCodec, [&] {
                      device.multiply(matrices, matrices + n * n, matrices + 2 * n * n, n,
                                      Stream::kArrivalCodec);
                    }}};
  Repeated coding{{Stream::kOwnCodec, [&] { slices.encode(Stream::kOwnCodec); }}};
  Repeated moving{{.stream = Stream::kOutbound,
                   .work = [&] { transfers.exchange(messages, message); },
                   .poll = transfers.poll,
                   .give_up = transfers.give_up}};
  balance(timer, options.effort, transfers, {&product, &coding, &moving});
  return {.compute_codec = measure_pair(timer, product, coding),
          .compute_transfer = measure_pair(timer, product, moving),
          .codec_transfer = measure_pair(timer, coding, moving)};
}

costs::OverlapFactors overlap_through_host(const Options& options) {
  const auto device = options.device(own_rank(options));
  std::byte* pinned = nullptr;
  return overlap_on(*device, options, {.exchange = [&](std::byte* memory, std::int64_t bytes) {
    if (pinned == nullptr) pinned = device->allocate_pinned(bytes);
    device->copy(pinned, memory, bytes, Stream::kOutbound);
    device->copy(memory + bytes, pinned, bytes, Stream::kOutbound);
  }});
}

costs::OverlapFactors overlap_over_nccl(const Options& options, transport::Endpoint& endpoint) {
  using Operation = transport::NcclOperation;
  const auto device = options.device(endpoint.rank());
  transport::NcclCommunicator communicator(endpoint, *options.nccl, options.timeout_s);
  const int ranks = endpoint.size();
  std::array<Operation, 2> group;
  group[0] = {.kind = Operation::Kind::kSend, .peer = (endpoint.rank() + 1) % ranks};
  group[1] = {.kind = Operation::Kind::kReceive, .peer = (endpoint.rank() + ranks - 1) % ranks};
  const Transfers transfers{.exchange =
                                [&](std::byte* memory, std::int64_t bytes) {
                                  for (Operation& operation : group) operation.bytes = bytes;
                                  group[0].memory = memory;
                                  group[1].memory = memory + bytes;
                                  communicator.issue(group, device->handle(Stream::kOutbound));
                                },
                            .poll = [&] { communicator.check(group); },
                            .give_up = [&] { communicator.give_up(group); },
                            .least =
                                [&](std::int64_t own) {
                                  const std::vector<std::int64_t> all = job::gather(endpoint, own);
                                  return *std::ranges::min_element(all);
                                }};
  try {
    return overlap_on(*device, options, transfers);
  } catch (...) {
    communicator.abandon();  // what waits on the GPU for other ranks ends now
    throw;
  }
}

}  // namespace

double overlap_factor(double first_s, double second_s, double together_s) {
  // Until the shorter one is over both take so many times as long; then the longer one goes on
  // alone: together = factor·shorter + (longer − shorter).
  const auto [shorter_s, longer_s] = std::minmax(first_s, second_s);
  const double factor = 1 + (together_s - longer_s) / std::max(shorter_s, 1e-9);
  return std::clamp(factor, 1.0, costs::kMaxOverlap);
}

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

costs::OverlapFactors measure_overlap(const Options& options, const Progress& progress) {
  progress("overlap of computation, codecs and transfers");
  if (options.nccl == nullptr) return overlap_through_host(options);
  costs::OverlapFactors factors;
  on_all_ranks(options, [&](transport::Endpoint& endpoint) {
    const costs::OverlapFactors mine = overlap_over_nccl(options, endpoint);
    if (endpoint.rank() == 0) factors = mine;
  });
  return factors;
}

}  // namespace hipress::profiler
