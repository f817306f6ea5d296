#include "profiler/device_timer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "io/error.hpp"

namespace hipress::profiler {
namespace {

using runtime::Device;
using runtime::Event;
using runtime::Stream;

/// Holds a stream until the destructor opens it.
class Gate {
 public:
  Gate(Device& device, Stream stream) {
    device.call([state = state_] { state->wait(); }, stream);
  }
  ~Gate() {
    {
      const std::lock_guard lock(state_->mutex);
      state_->open = true;
    }
    state_->opened.notify_all();
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

 private:
  // Limit of the hold. Enqueuing normally takes milliseconds. If it waits for the device (the
  // driver loads a kernel only then, a queue is full), the device continues after this time, and
  // one trial is wrong.
  static constexpr std::chrono::milliseconds kMax{250};

  struct State {
    void wait() {
      std::unique_lock lock(mutex);
      opened.wait_for(lock, kMax, [this] { return open; });
    }
    std::mutex mutex;
    std::condition_variable opened;
    bool open = false;
  };
  // Shared with the device's callback, which may outlive the gate.
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace

std::vector<double> DeviceTimer::burst(Stream stream, int count,
                                       const std::function<void(int)>& work) {
  for (int i = 0; i < count; ++i) {
    const std::size_t number = 2 * static_cast<std::size_t>(i);
    device_.record(event(number), stream);
    work(i);
    device_.record(event(number + 1), stream);
  }
  wait_for(event(2 * static_cast<std::size_t>(count) - 1), {.stream = stream, .work = {}});
  std::vector<double> seconds;
  // Short work may measure as 0, since events have a finite resolution.
  constexpr double kMin_s = 1e-9;
  for (int i = 0; i < count; ++i) {
    const std::size_t number = 2 * static_cast<std::size_t>(i);
    seconds.push_back(std::max(kMin_s, device_.seconds_between(event(number), event(number + 1))));
  }
  return seconds;
}

void DeviceTimer::run(const Lane& lane) {
  lane.work();
  device_.record(event(0), lane.stream);
  wait_for(event(0), lane);
}

double DeviceTimer::together(const std::vector<Lane>& lanes) {
  return std::ranges::max(ends_together(lanes));
}

std::vector<double> DeviceTimer::ends_together(const std::vector<Lane>& lanes) {
  const Event start = event(0);
  {
    const Gate gate(device_, lanes.front().stream);
    device_.record(start, lanes.front().stream);
    for (std::size_t i = 1; i < lanes.size(); ++i) device_.wait(start, lanes[i].stream);
    for (const Lane& lane : lanes) lane.work();
    for (std::size_t i = 0; i < lanes.size(); ++i) device_.record(event(1 + i), lanes[i].stream);
  }
  std::vector<double> ends_s;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    wait_for(event(1 + i), lanes[i]);
    ends_s.push_back(device_.seconds_between(start, event(1 + i)));
  }
  return ends_s;
}

Event DeviceTimer::event(std::size_t number) {
  while (events_.size() <= number) events_.push_back(device_.make_event());
  return events_[number];
}

void DeviceTimer::wait_for(Event event, const Lane& lane) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_s_);
  while (!device_.done(event)) {
    if (lane.poll) lane.poll();
    if (Clock::now() > deadline) {
      if (lane.give_up) lane.give_up();
      throw io::RunError(
          fmt::format("the GPU needed more than {} s for milliseconds of work; see what else uses "
                      "it (nvidia-smi), or give a longer `timeout`",
                      timeout_s_));
    }
    std::this_thread::yield();
  }
}

}  // namespace hipress::profiler
