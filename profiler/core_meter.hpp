#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace hipress::profiler {

/// Measures how much of the cores others use. A counting thread runs on each core. It leaves its
/// core to whoever waits for it, as a codec thread does: after a turn (runtime::kTurn), or at once,
/// as long codec tasks do (casync::kLongElements). Counts that are missing tell how long others had
/// the core. The kernel's accounts do not tell: much of a network's core time is spent in
/// interrupts, and is charged to the interrupted thread or to nobody.
class CoreMeter {
 public:
  /// When those that count leave their core.
  enum class Leaves { kAfterATurn, kForEveryMessage };

  /// For these cores, by Linux's numbers. Returns once it knows how fast they count alone: nothing
  /// else should run for a quarter of a second. std::system_error if there can be no more threads.
  CoreMeter(const std::vector<int>& cores, Leaves leaves);
  ~CoreMeter();
  CoreMeter(const CoreMeter&) = delete;
  CoreMeter& operator=(const CoreMeter&) = delete;

  /// Core-seconds that others have used since the meter was made; what matters is differences.
  double used_s() const;

  /// Those that count sleep until resume(), or where they are of real-time priority hardly anything
  /// ordinary would run beside them. What is used meanwhile cannot be told.
  void pause() noexcept { counting_ = false; }
  void resume() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  struct alignas(64) Counter {
    std::atomic<std::uint64_t> value{0};
    double per_second = 0;  ///< alone
    std::thread thread;
  };

  void stop() noexcept;  ///< joins what threads there are
  void count(Counter& counter) const;
  void count_for_a_while(Counter& counter) const;
  void calibrate();

  Leaves leaves_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> counting_{true};
  std::vector<std::unique_ptr<Counter>> counters_;
  Clock::time_point since_;
};

}  // namespace hipress::profiler
