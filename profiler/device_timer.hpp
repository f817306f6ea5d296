#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "runtime/device.hpp"

namespace hipress::profiler {

/// Times work on a device, by events around it. Work that does not end within `timeout_s` is an
/// error.
class DeviceTimer {
 public:
  DeviceTimer(runtime::Device& device, double timeout_s) : device_(device), timeout_s_(timeout_s) {}

  /// Enqueues `work(0)` … `work(count − 1)` on the stream back to back, so that the device does not
  /// wait for the host between them. Returns the seconds of each.
  std::vector<double> burst(runtime::Stream stream, int count,
                            const std::function<void(int)>& work);

  /// Work on one stream. NCCL's kernels wait on the device for other ranks without a limit, so the
  /// host's wait needs `poll` and `give_up` if the work involves other ranks.
  struct Lane {
    runtime::Stream stream;
    std::function<void()> work;  ///< enqueues the work
    /// Called repeatedly during the wait. Throws if the work cannot end any more.
    std::function<void()> poll = {};
    /// Called on timeout. Throws an error that names the rank at fault. Empty: io::RunError.
    std::function<void()> give_up = {};
  };

  /// Enqueues a lane's work and waits for it, without timing. Meant for the first run, which loads
  /// kernels and makes connections.
  void run(const Lane& lane);

  /// Enqueues all works, each on a stream of its own, and starts them together. The device is held
  /// until all are enqueued, so that the host's enqueuing is not timed. Returns the seconds until
  /// the last work ends. A work may have at most the launches that a stream accepts without
  /// blocking (about 1000).
  double together(const std::vector<Lane>& lanes);
  /// Like together(), but returns the seconds until each work ends.
  std::vector<double> ends_together(const std::vector<Lane>& lanes);

 private:
  runtime::Event event(std::size_t number);
  void wait_for(runtime::Event event, const Lane& lane);

  runtime::Device& device_;
  const double timeout_s_;
  std::vector<runtime::Event> events_;
};

}  // namespace hipress::profiler
