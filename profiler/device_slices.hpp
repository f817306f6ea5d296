#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/codec/codec.hpp"
#include "runtime/device.hpp"

namespace hipress::profiler {

/// Bytes of fp32 numbers.
constexpr std::int64_t bytes_of(std::int64_t elements) {
  return elements * static_cast<std::int64_t>(sizeof(float));
}

/// Leaves in slices of a device's memory numbers as a replay's gradients have them, the same in
/// each and again after 2^20 elements, and waits until they are there.
void fill_with_gradient(runtime::Device& device, std::span<float* const> slices,
                        std::int64_t elements);

/// Slices of one size in a device's memory, each with all that a codec's tasks touch. They are
/// taken in turn: enough of them, and data comes from memory and not from a cache.
class DeviceSlices {
 public:
  /// `arena` is memory of the device, of bytes(). Fills the slices with gradients as a replay has
  /// them, nothing kept from a step before, and whole messages; waits until that is done.
  DeviceSlices(runtime::Device& device, std::byte* arena, const kernels::Codec& codec,
               std::int64_t elements, int count);

  static std::int64_t bytes(const kernels::Codec& codec, std::int64_t elements, int count);

  /// Each enqueues one task on the stream, of the next slice.
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
