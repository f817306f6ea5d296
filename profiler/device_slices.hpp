#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/codec/codec.hpp"
#include "runtime/device.hpp"

namespace hipress::profiler {

/// Bytes of `elements` fp32 values.
constexpr std::int64_t bytes_of(std::int64_t elements) {
  return elements * static_cast<std::int64_t>(sizeof(float));
}

/// Fills slices in a device's memory with a replay's gradient: all with the same values, which
/// repeat after 2^20 elements. Waits until the device has done so.
void fill_with_gradient(runtime::Device& device, std::span<float* const> slices,
                        std::int64_t elements);

/// Slices of one size in a device's memory, each with the memory that a codec's tasks use. Tasks
/// use the slices in turn; with enough slices, data comes from memory and not from a cache.
class DeviceSlices {
 public:
  /// `arena` has bytes() bytes of the device's memory. Fills the slices with a replay's gradients,
  /// zero states and complete messages, and waits until the device has done so.
  DeviceSlices(runtime::Device& device, std::byte* arena, const kernels::Codec& codec,
               std::int64_t elements, int count);

  static std::int64_t bytes(const kernels::Codec& codec, std::int64_t elements, int count);

  /// Enqueue one task, on the next slice in turn.
  void encode(runtime::Stream stream);
  void decode(kernels::DecodeMode mode, runtime::Stream stream);
  void merge(runtime::Stream stream);

 private:
  std::int64_t each() const;
  std::byte* message_of(std::byte* slice) const { return slice + values_ * (2 + states_); }
  std::byte* next() { return arena_ + each() * (turn_++ % count_); }
  void fill();

  runtime::Device& device_;
  std::byte* const arena_;
  const kernels::Codec& codec_;
  const std::int64_t elements_;
  const int count_;
  int states_ = 0;
  std::int64_t values_ = 0, message_ = 0;  ///< bytes
  int turn_ = 0;
  std::uint64_t step_ = 0;
};

}  // namespace hipress::profiler
