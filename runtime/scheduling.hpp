#pragma once

#include <sched.h>

#include <chrono>

namespace hipress::runtime {

/// Time slice: a thread that runs tasks for longer than this yields its core to threads that move
/// bytes, which need it only briefly. Otherwise, with few cores, messages would wait until the
/// codec is idle. With a shorter slice, messages leave sooner but one by one, which costs more.
inline constexpr auto kTurn = std::chrono::microseconds(1000);

/// Scope in which a thread of real-time priority yields its core to any other waking thread of its
/// process. Meant for long computations on few cores: threads that move bytes need a core briefly,
/// but at once. Has no effect on threads of ordinary priority, which share cores anyway.
class ScopedYield {
 public:
  explicit ScopedYield(bool wanted) noexcept;
  ~ScopedYield();
  /// True if it has an effect for the calling thread.
  static bool possible() noexcept;
  ScopedYield(const ScopedYield&) = delete;
  ScopedYield& operator=(const ScopedYield&) = delete;

 private:
  bool lowered_ = false;
};

/// Scope in which a thread of real-time priority has ordinary priority. Meant for long work outside
/// the measured intervals: the kernel throttles real-time threads, typically for 50 ms, once they
/// have used a core for most of a second, and its own threads wait for the core until then.
class Ordinarily {
 public:
  Ordinarily() noexcept;
  ~Ordinarily();
  Ordinarily(const Ordinarily&) = delete;
  Ordinarily& operator=(const Ordinarily&) = delete;

 private:
  int policy_ = SCHED_OTHER;  ///< policy to restore
  sched_param parameters_{};
};

}  // namespace hipress::runtime
