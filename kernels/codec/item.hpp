#pragma once

#include <cstddef>
#include <cstdint>

/// What kernels and their callers pass each other, on every device: device code that is compiled at
/// run time (user/nvrtc.hpp) includes this too, so it must do without the rest of the standard
/// library.
namespace hipress::kernels {

/// How a gradient lies in memory. Arithmetic and states are fp32 whatever the type. An encode
/// widens what it reads, which is exact; a decode rounds once, at the end, to nearest even, and
/// beyond the type's largest number to infinity.
enum class ValueType : std::uint8_t { kFloat32, kFloat16, kBfloat16 };

constexpr std::int64_t bytes_per_value(ValueType type) {
  return type == ValueType::kFloat32 ? 4 : 2;
}

/// Which draws of the counter-based generator an encode uses: no two (node, gradient, role,
/// element, step) share one.
struct DrawKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;  ///< iteration
  std::uint32_t node = 0;
  std::uint32_t gradient = 0;
  std::uint32_t role = 0;          ///< worker, server, hop
  std::int64_t first_element = 0;  ///< global index of the slice's element 0
};

/// A slice's residual that is only half computed: `State::data` holds the values that were encoded
/// last. What their message decodes to, under `wire`, has yet to be subtracted. The next encode
/// does that in passing; Codec::settle() does it at any time.
struct Deferred {
  alignas(8) std::byte wire[48] = {};
  bool owed = false;  ///< false: State::data is the residual itself
};

/// Per-element state that an algorithm keeps between steps at one (gradient, role): error-feedback
/// residual, momentum. `count` arrays of the slice's length, each fp32; array i starts at
/// data + i * stride.
struct State {
  float* data = nullptr;  ///< null: the algorithm keeps none, or it is switched off
  std::int64_t stride = 0;
  /// Lets an encode leave its residual half computed, which saves a pass over the slice; belongs to
  /// exactly this slice. Null: data is the residual after every encode. The values differ in one
  /// case, a slice with a NaN or infinity: it leaves the residual unchanged if `deferred` is null,
  /// and else changes the residual by the rounding of v = x + residual.
  Deferred* deferred = nullptr;
};

/// One slice to encode. Pointers are to memory of the codec's device; values need no more alignment
/// than their type has.
struct EncodeItem {
  const void* values = nullptr;  ///< `elements` numbers of `type`
  ValueType type = ValueType::kFloat32;
  std::int64_t elements = 0;
  float divisor = 1;             ///< values are divided by it first
  State state = {};              ///< read and updated
  std::byte* message = nullptr;  ///< encoded_bytes(elements) bytes, 16-byte aligned
  DrawKey key = {};
  std::int64_t* message_bytes =
      nullptr;  ///< out, may be null: bytes really used, on the codec's device
};

/// What decode does with the decoded values d and the slice x already there, all of it in fp32.
enum class DecodeMode : std::uint8_t {
  kOverwrite,  ///< x = d
  kAdd,        ///< x = (x / own_divisor + d1 + d2 + … in the order given) / sum_divisor
};

}  // namespace hipress::kernels
