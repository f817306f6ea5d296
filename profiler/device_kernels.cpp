#include "profiler/device_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "executor/gather.hpp"
#include "executor/inputs.hpp"
#include "io/error.hpp"
#include "kernels/codec.hpp"
#include "profiler/sampling.hpp"
#include "transport/nccl.hpp"

namespace hipress::profiler {

using executor::Device;
using executor::Event;
using executor::Stream;

std::vector<double> DeviceTimer::burst(Stream stream, int count,
                                       const std::function<void(int)>& work) {
  for (int i = 0; i < count; ++i) {
    const auto number = static_cast<std::size_t>(2 * i);
    device_.record(event(number), stream);
    work(i);
    device_.record(event(number + 1), stream);
  }
  wait_for(event(static_cast<std::size_t>(2 * count - 1)));
  std::vector<double> seconds;
  // The clock of events has a resolution; no work takes nothing.
  constexpr double kLeast_s = 1e-9;
  for (int i = 0; i < count; ++i) {
    const auto number = static_cast<std::size_t>(2 * i);
    seconds.push_back(
        std::max(kLeast_s, device_.seconds_between(event(number), event(number + 1))));
  }
  return seconds;
}

double DeviceTimer::together(const std::vector<Lane>& lanes) {
  const Event start = event(0);
  device_.record(start, lanes.front().stream);
  for (std::size_t i = 1; i < lanes.size(); ++i) device_.wait(start, lanes[i].stream);
  for (const Lane& lane : lanes) lane.work();
  double last_s = 0;
  for (std::size_t i = 0; i < lanes.size(); ++i) device_.record(event(1 + i), lanes[i].stream);
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    wait_for(event(1 + i));
    last_s = std::max(last_s, device_.seconds_between(start, event(1 + i)));
  }
  return last_s;
}

Event DeviceTimer::event(std::size_t number) {
  while (events_.size() <= number) events_.push_back(device_.make_event());
  return events_[number];
}

void DeviceTimer::wait_for(Event event) {
  while (!device_.done(event)) std::this_thread::yield();
}

StoppingRule stopping_rule(Effort effort) {
  if (effort == Effort::kFull) return {};
  return {.warmup_most = 30, .precision = 0.03, .most = 60, .budget_s = 0.1};
}

namespace {

constexpr std::int64_t kAlignment = 256;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::int64_t bytes_of(std::int64_t elements) {
  return elements * static_cast<std::int64_t>(sizeof(float));
}

std::vector<std::int64_t> sizes(Effort effort) {
  std::vector<std::int64_t> all;
  const bool quick = effort == Effort::kQuick;
  for (int exponent = 10; exponent <= (quick ? 22 : 28); exponent += quick ? 4 : 1) {
    all.push_back(std::int64_t{1} << exponent);
  }
  return all;
}

/// As many as are more than the last cache of any GPU holds, but no more than that takes.
int slices_of(std::int64_t elements, Effort effort) {
  const std::int64_t cold = effort == Effort::kQuick ? 1 << 24 : 1 << 26;
  return static_cast<int>(std::clamp<std::int64_t>(cold / elements, 1, 256));
}

/// Slices of one size, each with all that a codec's tasks touch.
class Slices {
 public:
  Slices(Device& device, std::byte* arena, const kernels::Codec& codec, std::int64_t elements,
         int count)
      : device_(device), arena_(arena), codec_(codec), elements_(elements), count_(count) {
    states_ = codec.traits().error_feedback ? codec.traits().state_arrays : 0;
    values_ = bytes_of(aligned(elements));
    message_ = aligned(codec.encoded_bytes(elements));
    fill();
  }

  static std::int64_t bytes(const kernels::Codec& codec, std::int64_t elements, int count) {
    const int states = codec.traits().error_feedback ? codec.traits().state_arrays : 0;
    return count * (bytes_of(aligned(elements)) * (2 + states) +
                    aligned(codec.encoded_bytes(elements)) + kAlignment);
  }

  void encode(Stream stream) {
    std::byte* const slice = next();
    kernels::EncodeItem item{.values = slice,
                             .elements = elements_,
                             .state = {},
                             .message = message_of(slice),
                             .key = {.seed = 1, .step = step_++}};
    if (states_ > 0) {
      item.state = {.data = reinterpret_cast<float*>(slice + 2 * values_),
                    .stride = values_ / static_cast<std::int64_t>(sizeof(float)),
                    .deferred = reinterpret_cast<kernels::Deferred*>(message_of(slice) + message_)};
    }
    codec_.encode({&item, 1}, device_.handle(stream));
  }

  void decode(kernels::DecodeMode mode, Stream stream) {
    std::byte* const slice = next();
    const std::byte* const message = message_of(slice);
    const std::int64_t length = codec_.encoded_bytes(elements_);
    const kernels::DecodeItem item{.messages = {&message, 1},
                                   .message_bytes = {&length, 1},
                                   .elements = elements_,
                                   .values = slice + values_,
                                   .mode = mode};
    codec_.decode({&item, 1}, device_.handle(stream));
  }

  void merge(Stream stream) {
    std::byte* const slice = next();
    device_.merge(reinterpret_cast<const float*>(slice), elements_,
                  reinterpret_cast<float*>(slice + values_), 1, 1, stream);
  }

 private:
  std::int64_t each() const { return values_ * (2 + states_) + message_ + kAlignment; }
  std::byte* message_of(std::byte* slice) const { return slice + values_ * (2 + states_); }
  std::byte* next() { return arena_ + each() * (turn_++ % count_); }

  /// Gradients as a replay has them, nothing kept from a step before, and whole messages.
  void fill() {
    std::vector<float> some(static_cast<std::size_t>(std::min<std::int64_t>(elements_, 1 << 20)));
    executor::fill_inputs({.seed = 1}, 0, some);
    constexpr Stream kStream = Stream::kOwnCodec;
    device_.clear(arena_, each() * count_, kStream);
    for (int i = 0; i < count_; ++i) {
      for (std::int64_t at = 0; at < elements_; at += static_cast<std::int64_t>(some.size())) {
        const std::int64_t part = std::min(elements_ - at, static_cast<std::int64_t>(some.size()));
        device_.copy(arena_ + each() * i + bytes_of(at), some.data(), bytes_of(part), kStream);
      }
    }
    for (int i = 0; i < count_; ++i) encode(kStream);
    device_.drain();  // `some` goes away
  }

  Device& device_;
  std::byte* const arena_;
  const kernels::Codec& codec_;
  const std::int64_t elements_;
  const int count_;
  int states_ = 0;
  std::int64_t values_ = 0, message_ = 0;  ///< bytes
  int turn_ = 0;
  std::uint64_t step_ = 0;
};

/// Sizes of which a device's memory holds slices, and room for all of one size.
struct Room {
  std::vector<std::int64_t> sizes;
  std::int64_t bytes = 0;
};

Room room_for(Device& device, const kernels::Codec& codec, Effort effort) {
  Room room;
  const std::int64_t free = device.memory().free;
  for (const std::int64_t elements : sizes(effort)) {
    const std::int64_t bytes = Slices::bytes(codec, elements, slices_of(elements, effort));
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
  return room;
}

constexpr int kBurst = 8;

costs::Sample sample(Device& device, Effort effort, std::int64_t x,
                     const std::function<void(Stream)>& work) {
  DeviceTimer timer(device);
  constexpr Stream kStream = Stream::kOwnCodec;
  const Timing timing = measure_until(stopping_rule(effort), [&] {
    return timer.burst(kStream, kBurst, [&](int) { work(kStream); });
  });
  return summarise(x, timing.seconds);
}

double measure_copy(const Options& options) {
  const auto device = options.device(own_rank(options));
  const std::int64_t most = std::int64_t{1} << (options.effort == Effort::kQuick ? 24 : 30);
  const std::int64_t bytes = std::min(most, device->memory().free / 4);
  std::byte* const from = device->allocate(bytes);
  std::byte* const to = device->allocate(bytes);
  device->clear(from, bytes, Stream::kOwnCodec);
  const costs::Sample copies = sample(*device, options.effort, bytes, [&](Stream stream) {
    device->copy(to, from, bytes, stream);
  });
  return 2 * static_cast<double>(bytes) / copies.median_s;
}

void measure_codec(const std::string& algorithm, const Options& options, costs::Profile& profile) {
  const auto device = options.device(own_rank(options));
  const auto codec = device->codec(algorithm);
  const Room room = room_for(*device, *codec, options.effort);
  std::byte* const arena = device->allocate(room.bytes);
  std::vector<costs::Sample> encode, decode, decode_add;
  for (const std::int64_t elements : room.sizes) {
    Slices slices(*device, arena, *codec, elements, slices_of(elements, options.effort));
    const auto add = [&](std::vector<costs::Sample>& to, const std::function<void(Stream)>& work) {
      to.push_back(sample(*device, options.effort, elements, work));
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
  const Room room = room_for(*device, *codec, options.effort);
  std::byte* const arena = device->allocate(room.bytes);
  std::vector<costs::Sample> merges;
  for (const std::int64_t elements : room.sizes) {
    Slices slices(*device, arena, *codec, elements, slices_of(elements, options.effort));
    merges.push_back(
        sample(*device, options.effort, elements, [&](Stream stream) { slices.merge(stream); }));
  }
  profile.merge = fit_and_keep(profile, "merge", std::move(merges));
}

/// Something that a device does over and over.
struct Repeated {
  Stream stream;
  std::function<void()> once;
  int times = 1;
  DeviceTimer::Lane lane() const {
    return {stream, [this] {
              for (int i = 0; i < times; ++i) once();
            }};
  }
};

/// Times that works are repeated, so that each alone takes long enough to see the other.
void balance(DeviceTimer& timer, Effort effort, std::vector<Repeated*> works,
             const std::function<int(int)>& agree) {
  const double long_s = effort == Effort::kQuick ? 2e-3 : 20e-3;
  for (Repeated* const work : works) {
    timer.together({work->lane()});  // warm-up
    const double once_s = std::max(1e-7, timer.together({work->lane()}));
    work->times = agree(static_cast<int>(std::clamp(long_s / once_s, 1.0, 1000.0)));
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

/// One rank's part; `exchange` moves some bytes both ways.
costs::OverlapFactors overlap_on(Device& device, const Options& options,
                                 const std::function<void(std::byte*, std::int64_t)>& exchange,
                                 const std::function<int(int)>& agree) {
  const bool quick = options.effort == Effort::kQuick;
  const std::int64_t n = quick ? 64 : 2048, elements = quick ? 1 << 16 : 1 << 24;
  const auto codec = device.codec(options.algorithms.front());
  constexpr int kSlices = 4;  // in turn: more than a cache holds
  std::byte* const arena = device.allocate(Slices::bytes(*codec, elements, kSlices));
  Slices slices(device, arena, *codec, elements, kSlices);
  const std::int64_t matrix = bytes_of(n * n), message = bytes_of(elements);
  auto* const matrices = reinterpret_cast<float*>(device.allocate(3 * matrix));
  device.clear(matrices, 3 * matrix, Stream::kOwnCodec);
  std::byte* const messages = device.allocate(2 * message);
  device.clear(messages, 2 * message, Stream::kOwnCodec);
  device.drain();

  DeviceTimer timer(device);
  Repeated product{Stream::kArrivalCodec, [&] {
                     device.multiply(matrices, matrices + n * n, matrices + 2 * n * n, n,
                                     Stream::kArrivalCodec);
                   }};
  Repeated coding{Stream::kOwnCodec, [&] { slices.encode(Stream::kOwnCodec); }};
  Repeated moving{Stream::kOutbound, [&] { exchange(messages, message); }};
  balance(timer, options.effort, {&product, &coding, &moving}, agree);
  return {.compute_codec = measure_pair(timer, product, coding),
          .compute_transfer = measure_pair(timer, product, moving),
          .codec_transfer = measure_pair(timer, coding, moving)};
}

}  // namespace

double overlap_factor(double first_s, double second_s, double together_s) {
  return std::clamp(together_s / std::max(first_s, second_s), 1.0, costs::kMostOverlap);
}

void measure_device_kernels(const Options& options, const Progress& progress,
                            costs::Profile& profile) {
  progress("the device's copy bandwidth");
  profile.memory_bandwidth = measure_copy(options);
  for (const std::string& algorithm : options.algorithms) {
    progress("codec " + algorithm);
    measure_codec(algorithm, options, profile);
  }
  progress("merge");
  measure_merge(options, profile);
}

costs::OverlapFactors measure_overlap(const Options& options, const Progress& progress) {
  progress("overlap of computation, codecs and transfers");
  if (options.nccl == nullptr) {
    const auto device = options.device(own_rank(options));
    std::byte* pinned = nullptr;
    return overlap_on(
        *device, options,
        [&](std::byte* memory, std::int64_t bytes) {
          if (pinned == nullptr) pinned = device->allocate_pinned(bytes);
          device->copy(pinned, memory, bytes, Stream::kOutbound);
          device->copy(memory + bytes, pinned, bytes, Stream::kOutbound);
        },
        [](int times) { return times; });
  }
  costs::OverlapFactors factors;
  on_all_ranks(options, [&](transport::Endpoint& endpoint) {
    const auto device = options.device(endpoint.rank());
    transport::NcclCommunicator communicator(endpoint, *options.nccl, options.timeout_s);
    const int next = (endpoint.rank() + 1) % endpoint.size();
    const int previous = (endpoint.rank() + endpoint.size() - 1) % endpoint.size();
    const costs::OverlapFactors mine = overlap_on(
        *device, options,
        [&](std::byte* memory, std::int64_t bytes) {
          using Kind = transport::NcclOperation::Kind;
          const transport::NcclOperation group[] = {
              {.kind = Kind::kSend, .peer = next, .memory = memory, .bytes = bytes},
              {.kind = Kind::kReceive, .peer = previous, .memory = memory + bytes, .bytes = bytes}};
          communicator.issue(group, device->handle(Stream::kOutbound));
        },
        [&](int times) { return executor::gather(endpoint, times).front(); });
    if (endpoint.rank() == 0) factors = mine;
    device->drain();
  });
  return factors;
}

}  // namespace hipress::profiler
