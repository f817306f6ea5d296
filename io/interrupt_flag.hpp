#pragma once

#include <atomic>

namespace hipress::io {

/// Whether work is to end early. It looks at a flag of whoever asked for the work, which other
/// threads and signal handlers set at any time, and which lives until the work is done.
class InterruptFlag {
 public:
  /// The work goes on until it is done.
  InterruptFlag() = default;
  InterruptFlag(const std::atomic<bool>* flag) : flag_(flag) {}  ///< null: as without one
  /// Of a C program: any value but 0 ends the work. Null is no flag.
  explicit InterruptFlag(const volatile unsigned char* flag) : byte_(flag) {}

  bool exists() const { return flag_ != nullptr || byte_ != nullptr; }
  bool is_set() const {
    if (flag_ != nullptr) return flag_->load(std::memory_order_relaxed);
    // std::atomic_ref would ask for a byte that is neither const nor volatile.
    return byte_ != nullptr && __atomic_load_n(byte_, __ATOMIC_RELAXED) != 0;
  }

 private:
  const std::atomic<bool>* flag_ = nullptr;
  const volatile unsigned char* byte_ = nullptr;
};

}  // namespace hipress::io
