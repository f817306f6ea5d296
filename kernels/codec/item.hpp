#pragma once

#include <cstddef>
#include <cstdint>

/// Data structures that kernels and their callers share, on every device. Device code compiled at
/// run time (user/nvrtc.hpp) includes this header, so it uses only basic headers of the standard
/// library.
namespace hipress::kernels {

/// Element type of a gradient in memory. Arithmetic and states are always fp32. An encode widens
/// its input exactly. A decode rounds once, at the end, to nearest even; values beyond the type's
/// largest number become infinity.
enum class ValueType : std::uint8_t { kFloat32, kFloat16, kBfloat16 };

constexpr std::int64_t bytes_per_value(ValueType type) {
  return type == ValueType::kFloat32 ? 4 : 2;
}

/// Key of the counter-based random generator for one encode. Distinct (node, gradient, role,
/// element, step) get distinct draws.
struct DrawKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;  ///< iteration
  std::uint32_t node = 0;
  std::uint32_t gradient = 0;
  std::uint32_t role = 0;          ///< role of the node in this encode: worker, server or hop
  std::int64_t first_element = 0;  ///< global index of the slice's element 0
};

/// A half-computed residual of a slice. `State::data` holds the values that were encoded last;
/// their decoded message, described by `wire`, is still to be subtracted. The next encode subtracts
/// it in the same pass over the slice; Codec::settle() does it at any time.
struct Deferred {
  alignas(8) std::byte wire[48] = {};
  bool owed = false;  ///< false if State::data is the residual itself
};

/// Per-element state that an algorithm keeps between steps at one (gradient, role), such as an
/// error-feedback residual or momentum: fp32 arrays of the slice's length. Array i starts at
/// data + i * stride.
struct State {
  float* data = nullptr;  ///< null if the algorithm keeps none, or if it is switched off
  std::int64_t stride = 0;
  /// Lets an encode leave its residual half computed, which saves a pass over the slice. Belongs to
  /// exactly this slice. If null, data is the residual after every encode. Results differ only for
  /// a slice with a NaN or infinity: with null the residual is unchanged; otherwise it changes by
  /// the rounding of v = x + residual.
  Deferred* deferred = nullptr;
};

/// One slice to encode. Pointers are to memory of the codec's device. Values need only the
/// alignment of their type.
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

/// Combination of the decoded values d with the slice x in place, in fp32.
enum class DecodeMode : std::uint8_t {
  kOverwrite,  ///< x = d
  kAdd,        ///< x = (x / own_divisor + d1 + d2 + …, in message order) / sum_divisor
};

}  // namespace hipress::kernels
