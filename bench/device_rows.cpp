#include "bench/device_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>

#include "io/error.hpp"
#include "kernels/codec/codec.hpp"
#include "profiler/device_overlap.hpp"
#include "profiler/device_slices.hpp"
#include "profiler/device_step.hpp"
#include "profiler/device_timer.hpp"
#include "profiler/stages.hpp"

namespace hipress::bench {
namespace {

using profiler::bytes_of;
using profiler::DeviceSlices;
using profiler::DeviceTimer;
using profiler::StagedSlices;
using runtime::Device;
using runtime::Stream;

constexpr int kBurst = 8;
/// Total elements of the slices that are coded in turn: more than a last-level cache holds.
constexpr std::int64_t kCold = std::int64_t{1} << 26;
constexpr Stream kStream = Stream::kOwnCodec;

int slices_of(std::int64_t elements) {
  return static_cast<int>(std::clamp<std::int64_t>(kCold / elements, 1, 32));
}

/// Name of a size: "2^20" for a power of two, otherwise the number.
std::string size_name(std::int64_t elements) {
  const auto bits = static_cast<int>(std::lround(std::log2(static_cast<double>(elements))));
  const bool power = (std::int64_t{1} << bits) == elements;
  return power ? fmt::format("2^{}", bits) : fmt::format("{}", elements);
}

/// A block of device memory that measurements reuse, because a device frees memory only when it
/// ends.
class Arena {
 public:
  explicit Arena(Device& device) : device_(device) {
    const std::int64_t free = device.memory().free;
    most_ = free - free / 8;  // the rest is for the codecs' temporary memory
  }

  bool holds(std::int64_t bytes) const { return bytes <= most_; }
  std::byte* take(std::int64_t bytes) {
    if (bytes > bytes_) {
      most_ -= bytes_;  // the smaller block stays allocated
      memory_ = device_.allocate(bytes);
      bytes_ = bytes;
    }
    device_.clear(memory_, bytes, kStream);
    return memory_;
  }

 private:
  Device& device_;
  std::int64_t most_ = 0, bytes_ = 0;
  std::byte* memory_ = nullptr;
};

class DeviceBench {
 public:
  DeviceBench(Report& report, Device& device, const DeviceRowOptions& options)
      : report_(report),
        device_(device),
        options_(options),
        timer_(device, options.timeout_s),
        arena_(device) {}

  void run(bool with_staged) {
    std::vector<std::int64_t> sizes = options_.elements;
    std::ranges::sort(sizes, std::greater());  // the largest size allocates memory for all
    for (const std::int64_t elements : sizes) time_size(elements, with_staged);
    if (report_.empty() && options_.only.empty()) {
      throw io::RunError(fmt::format(
          "{} bytes of device memory are free: too few for any size; end what else uses it, or "
          "give smaller --elements",
          device_.memory().free));
    }
    if (asked("launch.")) time_launches();
    if (asked("overlap.")) time_overlaps();
    if (asked("step.")) time_steps();
  }

 private:
  bool asked(const std::string& name) const {
    return options_.only.empty() || name.find(options_.only) != std::string::npos ||
           (name.ends_with('.') && options_.only.starts_with(name));
  }

  static std::string name_of(const kernels::AlgorithmRow& row, const char* operation,
                             std::int64_t elements) {
    return fmt::format("{}.{}.{}", row.name, operation, size_name(elements));
  }
  /// True if any row of the algorithm at that size is requested.
  bool asked_of(const kernels::AlgorithmRow& row, std::int64_t elements) const {
    return std::ranges::any_of(std::array{"encode", "decode", "decode_add"}, [&](const char* what) {
      return asked(name_of(row, what, elements));
    });
  }

  double median_s(const std::function<void(int)>& work) {
    std::vector<double> all;
    timer_.burst(kStream, kBurst, work);  // the first launches load kernels
    for (int i = 0; i < options_.bursts; ++i) {
      const std::vector<double> some = timer_.burst(kStream, kBurst, work);
      all.insert(all.end(), some.begin(), some.end());
    }
    return summarise(std::move(all)).median_s;
  }

  // -------------------------------------------------------------------------------- codecs

  void time_size(std::int64_t elements, bool with_staged) {
    const int count = slices_of(elements);
    const std::int64_t bytes = bytes_of(elements);
    if (!arena_.holds(2 * count * bytes)) {
      fmt::print(stderr, "skipped: {} elements do not fit into the device's memory\n", elements);
      return;
    }
    std::byte* const memory = arena_.take(2 * count * bytes);
    copy_Bps_ = static_cast<double>(bytes) / median_s([&, turn = 0](int) mutable {
                  std::byte* const from = memory + 2 * bytes * (turn++ % count);
                  device_.copy(from + bytes, from, bytes, kStream);
                });
    if (asked("copy." + size_name(elements))) {
      report_.add(
          {"copy." + size_name(elements), "GB/s", copy_Bps_ / 1e9, "copy", copy_Bps_ / 1e9});
    }
    for (const kernels::AlgorithmRow& row : kernels::algorithms()) {
      if (!row.additive) {
        time_codec(row, elements);
      } else if (with_staged) {
        time_staged(row, elements);
      }
    }
  }

  void add(const kernels::AlgorithmRow& row, const char* operation, std::int64_t elements,
           double traffic, const std::function<double()>& seconds) {
    const std::string name = name_of(row, operation, elements);
    if (!asked(name)) return;
    const double rate = static_cast<double>(bytes_of(elements)) / seconds() / 1e9;
    // A copy reads and writes 4 bytes per fp32 element, so it moves 8.
    if (traffic > 0) {
      report_.add({name, "GB/s", rate, "traffic_floor", copy_Bps_ / 1e9 * 8 / traffic});
    }
    report_.add({name, "GB/s", rate, "copy", copy_Bps_ / 1e9});
  }

  void time_codec(const kernels::AlgorithmRow& row, std::int64_t elements) {
    const auto codec = device_.codec(std::string(row.name));
    const int count = slices_of(elements);
    const std::int64_t bytes = DeviceSlices::bytes(*codec, elements, count);
    if (!arena_.holds(bytes)) {
      fmt::print(stderr, "skipped: {} of {} elements does not fit into the device's memory\n",
                 row.name, elements);
      return;
    }
    if (!asked_of(row, elements)) return;
    DeviceSlices slices(device_, arena_.take(bytes), *codec, elements, count);
    using kernels::DecodeMode;
    add(row, "encode", elements, row.traffic.encode,
        [&] { return median_s([&](int) { slices.encode(kStream); }); });
    add(row, "decode", elements, row.traffic.decode,
        [&] { return median_s([&](int) { slices.decode(DecodeMode::kOverwrite, kStream); }); });
    add(row, "decode_add", elements, row.traffic.decode_add,
        [&] { return median_s([&](int) { slices.decode(DecodeMode::kAdd, kStream); }); });
  }

  /// Times a staged codec on a matrix that is as square as powers of two allow. Averages over two
  /// steps, because a codec may alternate between two kinds of steps.
  void time_staged(const kernels::AlgorithmRow& row, std::int64_t elements) {
    const auto codec = device_.codec(std::string(row.name));
    std::int64_t rows = 1;
    while (rows * rows * 4 <= elements) rows *= 2;
    const std::vector<std::int64_t> shape = {rows, elements / rows};
    const int count = slices_of(elements);
    const std::int64_t bytes = StagedSlices::bytes(*codec, shape, count);
    if (!arena_.holds(bytes) || !asked_of(row, elements)) return;
    std::byte* const memory = arena_.take(bytes);
    device_.drain();
    const StagedSlices slices(*codec, shape, count, memory);
    std::vector<float*> gradients;
    for (int slice = 0; slice < count; ++slice) gradients.push_back(slices.values(slice));
    profiler::fill_with_gradient(device_, gradients, elements);
    const int encodes = slices.works() - 1;
    const auto steps = [&](int first, int last) {
      return median_s([&, turn = 0](int) mutable {
               const int slice = turn++ % count;
               for (const std::uint64_t step : {1, 2}) {
                 for (int work = first; work < last; ++work) {
                   slices.run(work, slice, step, device_.handle(kStream));
                 }
               }
             }) /
             2;
    };
    add(row, "encode", elements, row.traffic.encode, [&] { return steps(0, encodes); });
    add(row, "decode", elements, row.traffic.decode, [&] { return steps(encodes, encodes + 1); });
  }

  // ------------------------------------------------------------------------------- launches

  /// Times casts of 64 elements, which take the time of a launch.
  void time_launches() {
    constexpr std::int64_t kElements = 64;
    const auto codec = device_.codec("bf16");
    DeviceSlices slices(device_, arena_.take(DeviceSlices::bytes(*codec, kElements, 32)), *codec,
                        kElements, 32);
    const double wall_s = seconds_of([&] {
      for (int i = 0; i < options_.launches; ++i) slices.encode(kStream);
      device_.drain();
    });
    constexpr double kAllowed_us = 20;
    report_.add(
        {"launch.host", "us/task", 1e6 * wall_s / options_.launches, "allowed", kAllowed_us});
    const double between_s = median_s([&](int) { slices.encode(kStream); });
    report_.add({"launch.device", "us/task", 1e6 * between_s, "allowed", kAllowed_us});
  }

  // ------------------------------------------------------------------------------- overlaps

  /// Work on a stream of its own.
  struct Work {
    std::string name;
    Stream stream;
    std::function<void()> enqueue;  ///< enqueues one launch, or a few
    double once_s = 0;
  };

  double time_once(const Work& work, int count) {
    std::vector<double> all = timer_.burst(work.stream, count, [&](int) { work.enqueue(); });
    return summarise(std::move(all)).median_s;
  }

  /// Overlap factor of `work`: its time while `other` runs, over its time alone. Empty if `other`
  /// ended first.
  std::optional<double> factor(const Work& work, const Work& other) {
    std::vector<double> factors;
    // A stream takes about 1000 launches without waiting, so only one launch of long work is timed.
    const int count = work.once_s > 1e-3 ? 1 : kBurst;
    const runtime::Event done = device_.make_event(), over = device_.make_event();
    for (int trial = 0; trial < options_.bursts; ++trial) {
      const double alone = time_once(work, count);
      const double wanted = 3 * count * alone / std::max(other.once_s, 1e-7);
      const auto times = static_cast<int>(std::clamp(wanted, 1.0, 800.0));
      for (int i = 0; i < times; ++i) other.enqueue();
      device_.record(over, other.stream);
      const double beside = time_once(work, count);
      device_.record(done, work.stream);
      device_.drain();
      if (device_.seconds_between(done, over) >= 0) factors.push_back(beside / alone);
    }
    if (factors.empty()) return {};
    return summarise(std::move(factors)).median_s;
  }

  /// Adds the classes of computation. They share one stream, as in a model, so they do not overlap.
  void add_computation(float* matrices, std::int64_t n, std::vector<Work>& works) {
    for (std::size_t i = 0; i < models::kComputeClasses; ++i) {
      const auto what = static_cast<models::ComputeClass>(i);
      works.push_back({std::string(models::kComputeClassTable[i].name), Stream::kArrivalCodec,
                       [this, matrices, n, what] {
                         device_.compute(what, matrices, matrices + n * n, matrices + 2 * n * n, n,
                                         Stream::kArrivalCodec);
                       }});
    }
  }

  void time_overlaps() {
    const std::int64_t n = options_.rows, elements = options_.overlap_elements;
    const auto codec = device_.codec("onebit");
    constexpr int kSlices = 4;
    const std::int64_t slices_bytes = DeviceSlices::bytes(*codec, elements, kSlices);
    const std::int64_t matrix = bytes_of(n * n), message = bytes_of(elements);
    if (!arena_.holds(slices_bytes + 3 * matrix + 2 * message)) {
      fmt::print(stderr, "skipped: overlaps, for which the device has too little memory\n");
      return;
    }
    std::byte* const memory = arena_.take(slices_bytes + 3 * matrix + 2 * message);
    DeviceSlices slices(device_, memory, *codec, elements, kSlices);
    auto* const matrices = reinterpret_cast<float*>(memory + slices_bytes);
    std::byte* const messages = memory + slices_bytes + 3 * matrix;
    std::byte* const pinned = device_.allocate_pinned(message);
    std::vector<Work> works = {
        {"codec", Stream::kOwnCodec, [&] { slices.encode(Stream::kOwnCodec); }},
        {"copy", Stream::kOutbound, [&] {
           device_.copy(pinned, messages, message, Stream::kOutbound);
           device_.copy(messages + message, pinned, message, Stream::kOutbound);
         }}};
    add_computation(matrices, n, works);
    for (Work& work : works) {
      timer_.run({.stream = work.stream, .work = work.enqueue});
      work.once_s = time_once(work, kBurst);
    }
    for (const Work& work : works) {
      for (const Work& other : works) {
        if (work.stream == other.stream) continue;
        const std::string name = fmt::format("overlap.{}_beside_{}", work.name, other.name);
        if (!asked(name)) continue;
        const std::optional<double> found = factor(work, other);
        if (found) {
          report_.add({name, "x", *found, "alone", 1});
        } else {
          fmt::print(stderr, "skipped: {}: the other never lasted long enough\n", name);
        }
      }
    }
    device_.drain();
  }

  /// Measures steps, and compares them with simulations that use overlap factors measured here, as
  /// hipress-profile does.
  void time_steps() {
    profiler::Options options{.algorithms = {"onebit"}, .timeout_s = options_.timeout_s};
    options.overlap = {.rows = options_.rows, .elements = options_.overlap_elements};
    if (options_.bursts < DeviceRowOptions{}.bursts) options.effort = profiler::Effort::kQuick;
    profiler::OverlapBench bench(device_, options, profiler::through_host(device_));
    std::vector<std::string> notes;
    const costs::OverlapFactors factors = bench.measure(notes);
    for (const std::string& note : notes) fmt::print(stderr, "{}\n", note);
    for (const profiler::StepCheck& step : profiler::check_steps(bench, options, factors)) {
      const std::string name = "step." + step.name;
      report_.add({name, "ms", 1e3 * step.predicted_s, "measured", 1e3 * step.measured_s});
      report_.add({name, "ms", 1e3 * step.unslowed_s, "measured_unslowed", 1e3 * step.measured_s});
    }
    device_.drain();
  }

  Report& report_;
  Device& device_;
  const DeviceRowOptions options_;
  DeviceTimer timer_;
  Arena arena_;
  double copy_Bps_ = 0;  ///< rate of the copy at the current size
};

}  // namespace

void add_device_rows(Report& report, Device& device, const DeviceRowOptions& options,
                     bool with_staged) {
  DeviceBench(report, device, options).run(with_staged);
}

}  // namespace hipress::bench
