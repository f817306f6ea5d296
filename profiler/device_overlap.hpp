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

/// Measures how much codecs, transfers and each class of computation slow each other on a device.
/// Transfers are copies to and from pinned memory; with Options::nccl they are messages over NCCL
/// between neighbours, on all ranks at once. A class that the device cannot compute gets the other
/// classes' mean factors, and `notes` names it. Throws transport::PeerError if a rank or its NCCL
/// fails.
costs::OverlapFactors measure_overlap(const Options& options, const Progress& progress,
                                      std::vector<std::string>& notes);

/// Beginning of notes about classes that the device cannot compute.
inline constexpr std::string_view kOverlapNote = "overlap of ";

/// Durations of two works in seconds: alone, and from a common start to each work's end.
struct PairTimes {
  double first_alone_s, second_alone_s;
  double first_end_s, second_end_s;
};

/// Slowdown of each of two works: its time while the other runs, divided by its time alone.
struct PairFactors {
  double first = 1;
  double second = 1;
};

/// Computes factors between 1 and costs::kMaxOverlap. The work that ends first was slowed all the
/// time. The other work was slowed until then, and did the rest alone.
PairFactors overlap_factors(const PairTimes& times);

/// Work that a device repeats.
struct Repeated {
  DeviceTimer::Lane once;
  /// Maximum of `times`: streams take about 1000 launches without blocking; a codec needs several.
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

/// Transfers that run at the same time as codecs and computation.
struct Transfers {
  /// Enqueues a transfer on the outbound stream: sends the first `bytes` bytes of `memory`, and
  /// receives the same number behind them.
  std::function<void(std::byte* memory, std::int64_t bytes)> exchange;
  /// Functions as in DeviceTimer::Lane, for lanes with transfers.
  std::function<void()> poll = {}, give_up = {};
  /// Minimum of a number over all ranks. By it, they agree on the number and size of exchanges.
  std::function<std::int64_t(std::int64_t)> least = [](std::int64_t own) { return own; };
};

/// Transfers that are copies to pinned memory and back.
Transfers through_host(runtime::Device& device);

/// Durations of two works: each alone, and each as if the other ran all the time.
struct PairSamples {
  double first_alone_s = 0, first_beside_s = 0;
  double second_alone_s = 0, second_beside_s = 0;
};

/// Measures overlap on one rank's device: works of two kinds (codec, transfers, computation) run at
/// the same time, each on a stream of its own.
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
  /// Enqueues computation of a class on matrices of `rows` rows (at most OverlapSizes::rows).
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
