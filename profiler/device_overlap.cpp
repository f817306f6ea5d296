#include "profiler/device_overlap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "costs/overlap_fit.hpp"
#include "io/error.hpp"
#include "job/gather.hpp"
#include "profiler/sampling.hpp"
#include "profiler/timing.hpp"
#include "transport/nccl.hpp"

namespace hipress::profiler {

using runtime::Device;
using runtime::Stream;

namespace {

/// The first algorithm that is not staged; if all are, bf16, which every device has.
std::shared_ptr<const kernels::Codec> codec_beside_work(
    Device& device, const std::vector<std::string>& algorithms) {
  for (const std::string& algorithm : algorithms) {
    auto codec = device.codec(algorithm);
    if (!codec->traits().additive) return codec;
  }
  return device.codec("bf16");
}

constexpr int kOverlapSlices = 4;  // used in turn; together they exceed the cache

/// Number of elements of slices and messages: the options', halved until they fit into memory.
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

/// Gives classes that were not measured the mean factors of the other classes.
void fill(costs::OverlapMatrix& matrix, const std::vector<std::size_t>& missing,
          std::vector<std::string>& notes) {
  const auto measured = static_cast<double>(models::kComputeClasses - missing.size());
  costs::ClassOverlap mean;
  for (const costs::ClassOverlapKey& key : costs::kClassOverlapKeys) {
    double sum = 0;
    for (const costs::ClassOverlap& row : matrix.classes) sum += row.*key.factor;
    // The factor of each missing class is still 1; the sum includes it.
    mean.*key.factor = (sum - static_cast<double>(missing.size())) / measured;
  }
  for (const std::size_t i : missing) {
    matrix.classes[i] = mean;
    notes.push_back(
        fmt::format("{}{} was not measured, which the device did not compute: its factors are the "
                    "mean of the other classes'",
                    kOverlapNote, models::kComputeClassTable[i].name));
  }
}

costs::OverlapFactors overlap_through_host(const Options& options,
                                           std::vector<std::string>& notes) {
  const auto device = options.device(own_rank(options));
  return OverlapBench(*device, options, through_host(*device)).measure(notes);
}

costs::OverlapFactors overlap_over_nccl(const Options& options, transport::Endpoint& endpoint,
                                        std::vector<std::string>& notes) {
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
    return OverlapBench(*device, options, transfers).measure(notes);
  } catch (...) {
    communicator.abandon();  // ends kernels that wait on the GPU for other ranks
    throw;
  }
}

}  // namespace

PairFactors overlap_factors(const PairTimes& times) {
  const auto within = [](double factor) { return std::clamp(factor, 1.0, costs::kMaxOverlap); };
  // A work that ends after `together_s` did its last end_s − together_s alone, at full speed.
  const auto slowed = [&](double together_s, double alone_s, double end_s) {
    const double done_s = alone_s - (end_s - together_s);
    return within(done_s * costs::kMaxOverlap > together_s ? together_s / done_s
                                                           : costs::kMaxOverlap);
  };
  const double together_s = std::min(times.first_end_s, times.second_end_s);
  return {slowed(together_s, times.first_alone_s, times.first_end_s),
          slowed(together_s, times.second_alone_s, times.second_end_s)};
}

Transfers through_host(Device& device) {
  return {.exchange = [&device, pinned = static_cast<std::byte*>(nullptr)](
                          std::byte* memory, std::int64_t bytes) mutable {
    if (pinned == nullptr) pinned = device.allocate_pinned(bytes);
    device.copy(pinned, memory, bytes, Stream::kOutbound);
    device.copy(memory + bytes, pinned, bytes, Stream::kOutbound);
  }};
}

OverlapBench::OverlapBench(Device& device, const Options& options, Transfers transfers)
    : device_(device),
      options_(options),
      transfers_(std::move(transfers)),
      codec_(codec_beside_work(device, options.algorithms)),
      elements_(transfers_.least(overlap_elements(device, *codec_, options.overlap))),
      slices_(device, device.allocate(DeviceSlices::bytes(*codec_, elements_, kOverlapSlices)),
              *codec_, elements_, kOverlapSlices),
      timer_(device, options.timeout_s) {
  const std::int64_t matrices = 3 * bytes_of(options.overlap.rows * options.overlap.rows);
  const std::int64_t messages = 2 * bytes_of(elements_);
  matrices_ = reinterpret_cast<float*>(device.allocate(matrices));
  messages_ = device.allocate(messages);
  device.clear(matrices_, matrices, Stream::kOwnCodec);
  device.clear(messages_, messages, Stream::kOwnCodec);
  device.drain();
  coding_.once = {Stream::kOwnCodec, [this] { slices_.encode(Stream::kOwnCodec); }};
  moving_.once = {.stream = Stream::kOutbound,
                  .work = [this] { transfers_.exchange(messages_, bytes_of(elements_)); },
                  .poll = transfers_.poll,
                  .give_up = transfers_.give_up};
  balance(coding_);
  balance(moving_);
}

costs::OverlapFactors OverlapBench::measure(std::vector<std::string>& notes) {
  const PairSamples pair = measure_pair(coding_, moving_);
  costs::OverlapMatrix matrix{.codec_beside_transfer = pair.first_beside_s / pair.first_alone_s,
                              .transfer_beside_codec = pair.second_beside_s / pair.second_alone_s};
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < models::kComputeClasses; ++i) {
    const auto what = static_cast<models::ComputeClass>(i);
    if (!computes(what)) {
      missing.push_back(i);
    } else {
      matrix.classes[i] = measure_class(what);
    }
  }
  if (missing.size() == models::kComputeClasses) {
    notes.push_back(fmt::format(
        "{}computation was not measured: the device computed none of its classes", kOverlapNote));
    return {.codec_transfer = std::max(matrix.codec_beside_transfer, matrix.transfer_beside_codec)};
  }
  fill(matrix, missing, notes);
  return {.matrix = matrix};
}

void OverlapBench::compute(models::ComputeClass what, std::int64_t rows) {
  float* const second = matrices_ + rows * rows;
  device_.compute(what, matrices_, second, second + rows * rows, rows, Stream::kArrivalCodec);
}

bool OverlapBench::computes(models::ComputeClass what) {
  bool can = true;
  try {
    compute(what, options_.overlap.rows);
  } catch (const io::RunError&) {
    can = false;
  }
  return transfers_.least(can ? 1 : 0) == 1;
}

/// Sets the repetitions of a work, so that it takes long enough to overlap with other work.
void OverlapBench::balance(Repeated& work) {
  const double long_s = options_.effort == Effort::kQuick ? 4e-3 : 20e-3;
  timer_.run(work.lane());
  const double once_s = std::max(1e-7, timer_.together({work.lane()}));
  const double times = std::clamp(long_s / once_s, 1.0, static_cast<double>(work.most_times));
  work.times = static_cast<int>(transfers_.least(static_cast<std::int64_t>(times)));
}

PairSamples OverlapBench::measure_pair(const Repeated& first, const Repeated& second) {
  constexpr int kTrials = 7;
  std::vector<double> first_s, second_s, first_factors, second_factors;
  for (int trial = 0; trial < kTrials; ++trial) {
    first_s.push_back(timer_.together({first.lane()}));
    second_s.push_back(timer_.together({second.lane()}));
    const std::vector<double> ends_s = timer_.ends_together({first.lane(), second.lane()});
    const PairFactors found =
        overlap_factors({first_s.back(), second_s.back(), ends_s[0], ends_s[1]});
    first_factors.push_back(found.first);
    second_factors.push_back(found.second);
  }
  const auto median = [](std::vector<double> all) { return summarise(0, std::move(all)).median_s; };
  PairSamples samples{.first_alone_s = median(first_s), .second_alone_s = median(second_s)};
  samples.first_beside_s = samples.first_alone_s * median(first_factors);
  samples.second_beside_s = samples.second_alone_s * median(second_factors);
  return samples;
}

/// Measures the factors of a class with matrices of two sizes (one if `rows` is small). A factor is
/// the sum of the times beside the other work, divided by the sum of the times alone.
costs::ClassOverlap OverlapBench::measure_class(models::ComputeClass what) {
  std::array<std::vector<costs::BesideSample>, costs::kClassOverlapKeys.size()> samples;
  constexpr std::int64_t kTile = 64;
  std::vector<std::int64_t> sizes = {options_.overlap.rows};
  if (sizes[0] / 2 >= kTile) sizes.push_back(sizes[0] / 2 / kTile * kTile);
  for (const std::int64_t rows : sizes) {
    Repeated computing{.once = {Stream::kArrivalCodec, [this, what, rows] { compute(what, rows); }},
                       .most_times = 512};
    balance(computing);
    const PairSamples codec = measure_pair(computing, coding_);
    const PairSamples transfer = measure_pair(computing, moving_);
    const std::string name(models::row_of(what).name);
    // In the order of kClassOverlapKeys.
    samples[0].push_back({name, codec.first_alone_s, codec.first_beside_s});
    samples[1].push_back({name, transfer.first_alone_s, transfer.first_beside_s});
    samples[2].push_back({name, codec.second_alone_s, codec.second_beside_s});
    samples[3].push_back({name, transfer.second_alone_s, transfer.second_beside_s});
  }
  costs::ClassOverlap found;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    found.*costs::kClassOverlapKeys[i].factor = costs::class_factors(samples[i]).begin()->second;
  }
  return found;
}

costs::OverlapFactors measure_overlap(const Options& options, const Progress& progress,
                                      std::vector<std::string>& notes) {
  progress("overlap of computation, codecs and transfers");
  if (options.nccl == nullptr) return overlap_through_host(options, notes);
  costs::OverlapFactors factors;
  on_all_ranks(options, [&](transport::Endpoint& endpoint) {
    std::vector<std::string> own;
    const costs::OverlapFactors mine = overlap_over_nccl(options, endpoint, own);
    if (endpoint.rank() != 0) return;
    factors = mine;
    notes.insert(notes.end(), own.begin(), own.end());
  });
  return factors;
}

}  // namespace hipress::profiler
