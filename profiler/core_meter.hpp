#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace hipress::profiler {

/// Measures the core time that other threads use. A counting thread runs on each core. It
/// yields the core to waiting threads by one of two rules (Leaves): after a time slice
/// (runtime::kTurn), as codec threads do, or at once, as they do during a long task
/// (casync::kLongElements). The counts it misses show the time for which
/// other threads had the core. The kernel's accounting cannot show it: much of a network's core
/// time is spent in interrupts, which are charged to the interrupted thread or to no thread.
class CoreMeter {
 public:
  /// Rule by which counting threads yield their core.
  enum class Leaves { kAfterATurn, kForEveryMessage };

  /// Starts a counting thread on each of these cores (Linux's numbers), and measures for a quarter
  /// of a second how fast they count; nothing else should run at that time. Throws
  /// std::system_error if a thread cannot be started.
  CoreMeter(const std::vector<int>& cores, Leaves leaves);
  ~CoreMeter();
  CoreMeter(const CoreMeter&) = delete;
  CoreMeter& operator=(const CoreMeter&) = delete;

  /// Core-seconds that other threads have used. Only differences between two calls are meaningful.
  double used_s() const;

  /// Makes the counting threads sleep until resume(), since with real-time priority they would keep
  /// ordinary threads from running. Core time is not measured during the pause.
  void pause() noexcept { counting_ = false; }
  void resume() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  struct alignas(64) Counter {
    std::atomic<std::uint64_t> value{0};
    double per_second = 0;  ///< counts per second without other threads
    std::thread thread;
  };

  void stop() noexcept;  ///< joins all threads
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
