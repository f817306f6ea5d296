#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "costs/overlap.hpp"
#include "kernels/codec/codec.hpp"
#include "profiler/device_slices.hpp"
#include "profiler/device_timer.hpp"
#include "profiler/options.hpp"

namespace hipress::profiler {

/// Measures the mutual slowdown of codecs, transfers and computation of every class on a device.
/// Transfers are copies to and from pinned memory, or with Options::nccl messages over NCCL between
/// neighbours, on all ranks at once. A class that the device cannot compute gets the mean of the
/// other classes' factors, and `notes` names it. Throws transport::PeerError if a rank or its NCCL
/// fails.
costs::OverlapFactors measure_overlap(const Options& options, const Progress& progress,
                                      std::vector<std::string>& notes);

/// Beginning of the notes on classes that the device cannot compute.
inline constexpr std::string_view kOverlapNote = "overlap of ";

/// Durations of two works in seconds: alone, and from a common start to the end of each.
struct PairTimes {
  double first_alone_s, second_alone_s;
  double first_end_s, second_end_s;
};

/// Slowdown of each of two works while the other runs: time beside it over time alone.
struct PairFactors {
  double first = 1;
  double second = 1;
};

/// Factors between 1 and costs::kMaxOverlap. The work that ends first ran beside the other all the
/// time. The other did a part of its work at its slower pace, and the rest alone.
PairFactors overlap_factors(const PairTimes& times);

/// Work that a device repeats.
struct Repeated {
  DeviceTimer::Lane once;
  /// Maximum of `times`: a stream accepts about 1000 launches without blocking, and a codec takes
  /// several.
  int most_times = 64;
  int times = 1;
  DeviceTimer::Lane lane() const {
    DeviceTimer::Lane all = once;
    all.work = [this] {
      for (int i = 0; i < times; ++i) once.work();
    };
    return all;
  }
};

/// Transfers that run beside codecs and computation.
struct Transfers {
  /// Enqueues on the outbound stream: sends the first `bytes` of `memory`, and receives as many
  /// bytes after them.
  std::function<void(std::byte* memory, std::int64_t bytes)> exchange;
  /// Functions called during a wait for transfers, and on its timeout, as in DeviceTimer::Lane.
  std::function<void()> poll = {}, give_up = {};
  /// Minimum over all ranks: they must exchange equally often, and equally many bytes.
  std::function<std::int64_t(std::int64_t)> least = [](std::int64_t own) { return own; };
};

/// Copies to pinned memory and back.
Transfers through_host(runtime::Device& device);

/// Durations of two works alone, and beside the other if that never ended.
struct PairSamples {
  double first_alone_s = 0, first_beside_s = 0;
  double second_alone_s = 0, second_beside_s = 0;
};

/// Measures overlap on one rank's device: a codec, transfers and computation run side by side, each
/// on a stream of its own.
class OverlapBench {
 public:
  /// `options` and the objects that `transfers` refers to must outlive the bench.
  OverlapBench(runtime::Device& device, const Options& options, Transfers transfers);
  OverlapBench(const OverlapBench&) = delete;
  OverlapBench& operator=(const OverlapBench&) = delete;

  /// See measure_overlap().
  costs::OverlapFactors measure(std::vector<std::string>& notes);

  DeviceTimer& timer() { return timer_; }
  const Repeated& coding() const { return coding_; }
  const Repeated& moving() const { return moving_; }
  /// Enqueues computation of a class on matrices of `rows` rows, at most OverlapSizes::rows.
  void compute(models::ComputeClass what, std::int64_t rows);
  /// True if all ranks' devices have kernels of that class.
  bool computes(models::ComputeClass what);

 private:
  void balance(Repeated& work);
  PairSamples measure_pair(const Repeated& first, const Repeated& second);
  costs::ClassOverlap measure_class(models::ComputeClass what);

  runtime::Device& device_;
  const Options& options_;
  const Transfers transfers_;
  std::shared_ptr<const kernels::Codec> codec_;
  const std::int64_t elements_;
  DeviceSlices slices_;
  DeviceTimer timer_;
  float* matrices_ = nullptr;
  std::byte* messages_ = nullptr;
  Repeated coding_, moving_;
};

}  // namespace hipress::profiler
