#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "runtime/device.hpp"

namespace hipress::profiler {

/// Times what is enqueued on a device, by events around it. What the device does not end within
/// `timeout_s` is an error.
class DeviceTimer {
 public:
  DeviceTimer(runtime::Device& device, double timeout_s) : device_(device), timeout_s_(timeout_s) {}

  /// Enqueues `work(0)` … `work(count − 1)` on the stream, one right behind the other, so that the
  /// device does not wait for the host between them, and returns the seconds of each.
  std::vector<double> burst(runtime::Stream stream, int count,
                            const std::function<void(int)>& work);

  /// What runs on one stream. Where it needs other ranks, NCCL's kernels wait for them on the
  /// device for as long as it takes, so waiting for it must not.
  struct Lane {
    runtime::Stream stream;
    std::function<void()> work;  ///< enqueues it
    /// Called over and over while it is waited for: throws when it cannot end any more.
    std::function<void()> poll = {};
    /// Called when the time is over: throws what names the culprit. Without it io::RunError.
    std::function<void()> give_up = {};
  };

  /// Enqueues a lane's work and waits for it, without timing: for the first time, in which kernels
  /// are loaded and connections made.
  void run(const Lane& lane);

  /// Enqueues all works, each on a stream of its own, and lets them start together once all are
  /// enqueued. The device is held until then, because otherwise the host's enqueuing would be
  /// timed. Returns the seconds until the last work is over. No work may have more launches than a
  /// stream takes without waiting (about 1000).
  double together(const std::vector<Lane>& lanes);
  /// The same, but the seconds until each is over.
  std::vector<double> ends_together(const std::vector<Lane>& lanes);

 private:
  runtime::Event event(std::size_t number);
  void wait_for(runtime::Event event, const Lane& lane);

  runtime::Device& device_;
  const double timeout_s_;
  std::vector<runtime::Event> events_;
};

}  // namespace hipress::profiler
