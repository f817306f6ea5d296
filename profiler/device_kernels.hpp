#pragma once

#include <functional>

#include "costs/profile.hpp"
#include "executor/device.hpp"
#include "profiler/profiler.hpp"
#include "profiler/timing.hpp"

namespace hipress::profiler {

/// Times what is enqueued on a device, by events around it.
class DeviceTimer {
 public:
  explicit DeviceTimer(executor::Device& device) : device_(device) {}

  /// Enqueues `work(0)` … `work(count − 1)` on the stream, one right behind the other, so that the
  /// device does not wait for the host between them, and returns the seconds of each.
  std::vector<double> burst(executor::Stream stream, int count,
                            const std::function<void(int)>& work);
  /// Enqueues all works, each on a stream of its own, to start together; returns the seconds until
  /// the last is over.
  struct Lane {
    executor::Stream stream;
    std::function<void()> work;
  };
  double together(const std::vector<Lane>& lanes);

 private:
  executor::Event event(std::size_t number);
  void wait_for(executor::Event event);

  executor::Device& device_;
  std::vector<executor::Event> events_;
};

/// How sure times on a device must be.
StoppingRule stopping_rule(Effort effort);

/// The device's memory bandwidth (of a copy, reads and writes counted: the ceiling of kernels), and
/// encode, decode, decode-and-add and merge of 2^10 … 2^28 elements, as far as they fit into its
/// memory. Slices are taken in turn, so that data comes from memory and not from a cache.
void measure_device_kernels(const Options& options, const Progress& progress,
                            costs::Profile& profile);

/// How much a codec, a matrix product and transfers slow each other down on a device; transfers as
/// the options move messages: copies to and from pinned memory, or over NCCL between neighbours,
/// with all ranks at once.
costs::OverlapFactors measure_overlap(const Options& options, const Progress& progress);

/// How many times as long two works take that run together, of which each alone takes `first_s` and
/// `second_s` and both `together_s`: 1 where they do not disturb each other.
double overlap_factor(double first_s, double second_s, double together_s);

}  // namespace hipress::profiler
