#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "tests/kernels/emulation/fiber.hpp"

/// Device memory of the emulation: host memory between guards. It is filled with a poison that
/// changes with the schedule, so that results that depend on unwritten memory differ. The address
/// sanitizer also reports reads of guards, and accesses outside of kernels and copies.
namespace hipress::kernels::emulation {

class DeviceMemory {
 public:
  static DeviceMemory& instance() {
    static DeviceMemory memory;
    return memory;
  }

  void* allocate(std::size_t bytes) {
    const std::size_t whole =
        2 * kGuardBytes + (bytes + kGuardBytes - 1) / kGuardBytes * kGuardBytes;
    auto* block = static_cast<std::byte*>(std::aligned_alloc(kGuardBytes, whole));
    if (block == nullptr) return nullptr;
    std::memset(block, kGuard, whole);
    std::memset(block + kGuardBytes, poison, bytes);
    hide(block, whole);
    sizes_.emplace(block + kGuardBytes, bytes);
    return block + kGuardBytes;
  }

  /// Frees an allocation; returns false if `data` is not the beginning of one.
  bool free(void* data) {
    const auto found = sizes_.find(static_cast<std::byte*>(data));
    if (found == sizes_.end()) return false;
    std::byte* const block = found->first - kGuardBytes;
    show(block, found->second + 2 * kGuardBytes);
    std::memset(found->first, kFreed, found->second);
    std::free(block);
    sizes_.erase(found);
    return true;
  }

  /// True if [data, data + bytes) lies within one allocation.
  bool holds(const void* data, std::size_t bytes) const {
    const auto* first = static_cast<const std::byte*>(data);
    auto next = sizes_.upper_bound(const_cast<std::byte*>(first));
    if (next == sizes_.begin()) return false;
    const auto& [begin, size] = *--next;
    return bytes <= size && static_cast<std::size_t>(first - begin) <= size - bytes;
  }

  /// Describes writes into guards; empty if there were none. Restores the guards.
  std::string damage() {
    std::string found;
    for (const auto& [data, bytes] : sizes_) {
      const std::size_t behind = kGuardBytes + (kGuardBytes - bytes % kGuardBytes) % kGuardBytes;
      show(data - kGuardBytes, kGuardBytes);
      show(data + bytes, behind);
      const std::string which = " an allocation of " + std::to_string(bytes) + " bytes";
      if (overwritten(data - kGuardBytes, kGuardBytes)) found += "a kernel wrote before" + which;
      if (overwritten(data + bytes, behind)) found += "a kernel wrote behind" + which;
      hide(data - kGuardBytes, kGuardBytes);
      hide(data + bytes, behind);
    }
    return found;
  }

  /// Allows reads and writes of device memory while the object exists.
  class Access {
   public:
    Access() {
      for (const auto& [data, bytes] : instance().sizes_) show(data, bytes);
    }
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;
    ~Access() {
      for (const auto& [data, bytes] : instance().sizes_) hide(data, bytes);
    }
  };

  std::size_t allocations() const { return sizes_.size(); }

  int poison = 0xff;

 private:
  static constexpr std::size_t kGuardBytes = 256;
  static constexpr int kGuard = 0xa5, kFreed = 0xdd;

  static bool overwritten(std::byte* guard, std::size_t bytes) {
    bool found = false;
    for (std::size_t i = 0; i < bytes; ++i) found |= guard[i] != std::byte(kGuard);
    std::memset(guard, kGuard, bytes);
    return found;
  }
  static void hide([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#ifdef EMULATION_ASAN
    __asan_poison_memory_region(data, bytes);
#endif
  }
  static void show([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#ifdef EMULATION_ASAN
    __asan_unpoison_memory_region(data, bytes);
#endif
  }

  std::map<std::byte*, std::size_t> sizes_;
};

}  // namespace hipress::kernels::emulation
