#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "runtime/device.hpp"

namespace hipress::profiler {

/// Times work on a device by events. Throws io::RunError if work does not end within `timeout_s`.
class DeviceTimer {
 public:
  DeviceTimer(runtime::Device& device, double timeout_s) : device_(device), timeout_s_(timeout_s) {}

  /// Enqueues `work(0)` … `work(count − 1)` on the stream back to back, so the device does not wait
  /// for the host between them. Returns the seconds of each.
  std::vector<double> burst(runtime::Stream stream, int count,
                            const std::function<void(int)>& work);

  /// Work on one stream. Work with other ranks needs `poll` and `give_up`: NCCL's kernels wait for
  /// other ranks without a limit.
  struct Lane {
    runtime::Stream stream;
    std::function<void()> work;  ///< enqueues the work
    /// Called repeatedly during the wait for the work. Throws if the work can no longer end.
    std::function<void()> poll = {};
    /// Called on timeout. Throws an error that names the rank at fault. Empty: io::RunError.
    std::function<void()> give_up = {};
  };

  /// Enqueues a lane's work and waits for it, without timing it. For the first run, which loads
  /// kernels and makes connections.
  void run(const Lane& lane);

  /// Enqueues the work of all lanes and starts it together. The device is held until all is
  /// enqueued, so enqueuing is not timed. Returns the seconds until the last work ends. A lane may
  /// have at most the number of launches that a stream accepts without blocking (about 1000).
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
