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

/// Measures how much codecs, transfers and computation of every class slow each other on a device,
/// in both directions. Transfers move as the options say: copies to and from pinned memory, or
/// messages over NCCL between neighbours, on all ranks at once. A class that the device cannot
/// compute gets the mean of the other classes' factors, and `notes` names it. transport::PeerError
/// if a rank or its NCCL fails.
costs::OverlapFactors measure_overlap(const Options& options, const Progress& progress,
                                      std::vector<std::string>& notes);

/// How those notes begin.
inline constexpr std::string_view kOverlapNote = "overlap of ";

/// Two works, in seconds: each alone, and until it is over where both start together.
struct PairTimes {
  double first_alone_s, second_alone_s;
  double first_end_s, second_end_s;
};

/// How many times as long each of two works takes while the other is under way.
struct PairFactors {
  double first = 1;
  double second = 1;
};

/// Within 1 and costs::kMaxOverlap. What ends first has run beside the other all the time; the
/// other has then done a part of its work at its slower pace, and does the rest alone.
PairFactors overlap_factors(const PairTimes& times);

/// Something that a device does over and over.
struct Repeated {
  DeviceTimer::Lane once;
  /// A stream must take all without waiting, at most about 1000 launches; a codec is a few.
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

/// Copies to pinned memory and back.
Transfers through_host(runtime::Device& device);

/// How long two works take alone, and how long each would take if the other never ended.
struct PairSamples {
  double first_alone_s = 0, first_beside_s = 0;
  double second_alone_s = 0, second_beside_s = 0;
};

/// What runs beside each other on one rank's device: a codec, transfers and computation, each on a
/// stream of its own.
class OverlapBench {
 public:
  /// `options` and what `transfers` refers to must outlive it.
  OverlapBench(runtime::Device& device, const Options& options, Transfers transfers);
  OverlapBench(const OverlapBench&) = delete;
  OverlapBench& operator=(const OverlapBench&) = delete;

  /// As measure_overlap().
  costs::OverlapFactors measure(std::vector<std::string>& notes);

  DeviceTimer& timer() { return timer_; }
  const Repeated& coding() const { return coding_; }
  const Repeated& moving() const { return moving_; }
  /// Enqueues computation of that class on matrices of so many rows, at most the options'.
  void compute(models::ComputeClass what, std::int64_t rows);
  /// Whether all ranks' devices have kernels of that class.
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
