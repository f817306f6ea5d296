#pragma once

#include <atomic>

namespace hipress::io {

/// View of a caller's flag that asks to end work early. Other threads and signal handlers may set
/// the flag at any time. It must outlive the work.
class InterruptFlag {
 public:
  /// A flag that is never set: the work runs to its end.
  InterruptFlag() = default;
  InterruptFlag(const std::atomic<bool>* flag) : flag_(flag) {}  ///< null: never set
  /// Flag of a C program: any value but 0 ends the work. Null: never set.
  explicit InterruptFlag(const volatile unsigned char* flag) : byte_(flag) {}

  bool exists() const { return flag_ != nullptr || byte_ != nullptr; }
  bool is_set() const {
    if (flag_ != nullptr) return flag_->load(std::memory_order_relaxed);
    // std::atomic_ref takes neither const nor volatile bytes.
    return byte_ != nullptr && __atomic_load_n(byte_, __ATOMIC_RELAXED) != 0;
  }

 private:
  const std::atomic<bool>* flag_ = nullptr;
  const volatile unsigned char* byte_ = nullptr;
};

}  // namespace hipress::io
