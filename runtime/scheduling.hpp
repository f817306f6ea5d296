#pragma once

#include <sched.h>

#include <chrono>

namespace hipress::runtime {

/// A thread that runs tasks for longer than this leaves its core to threads that move bytes, which
/// need it only briefly. Otherwise, where cores are few, messages would wait until the codec has
/// nothing to do. Shorter: messages leave sooner, but each by itself, which costs more.
inline constexpr auto kTurn = std::chrono::microseconds(1000);

/// While it lives, a thread of real-time priority leaves its core to any other of its process that
/// wakes up. For tasks that compute for long where cores are few: threads that move bytes need a
/// core briefly, but at once. Ordinary threads take turns anyway, and are left as they are.
class ScopedYield {
 public:
  explicit ScopedYield(bool wanted) noexcept;
  ~ScopedYield();
  /// Whether it does anything for the calling thread.
  static bool possible() noexcept;
  ScopedYield(const ScopedYield&) = delete;
  ScopedYield& operator=(const ScopedYield&) = delete;

 private:
  bool lowered_ = false;
};

/// While it lives, a thread of real-time priority is an ordinary one. For long work beside what is
/// timed: the kernel stops real-time threads, for 50 ms as a rule, once they have kept a core busy
/// for most of a second, and the kernel's own threads wait for the core until then.
class Ordinarily {
 public:
  Ordinarily() noexcept;
  ~Ordinarily();
  Ordinarily(const Ordinarily&) = delete;
  Ordinarily& operator=(const Ordinarily&) = delete;

 private:
  int policy_ = SCHED_OTHER;  ///< to return to
  sched_param parameters_{};
};

}  // namespace hipress::runtime
