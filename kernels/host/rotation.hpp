#pragma once

#include <utility>

#include "kernels/codec/lanes.hpp"
#include "kernels/frames/block_quantizer.hpp"

/// Rotation of a block, a fast Walsh-Hadamard transform, as defined in frames/block_quantizer.hpp.
/// Every function that is not forced inline is a template on F; see host/loops_body.hpp.
namespace hipress::kernels {

/// Replaces lanes l and l ^ kApart by their sum and their difference.
template <int kApart, class F>
HIPRESS_LANES F butterfly(F value) {
  constexpr int kWidth = Lanes<F>::kWidth;
  // To subtract the second of a pair, flip its sign, then add.
  constexpr int kShift = 31 - __builtin_ctz(static_cast<unsigned>(kApart));
  const UnsignedLanes<F> sign = (lane_numbers<F>() & static_cast<std::uint32_t>(kApart)) << kShift;
  const F partner = [&]<int... kLane>(std::integer_sequence<int, kLane...>)
      __attribute__((always_inline)) {
    return F(__builtin_shufflevector(value, value, (kLane ^ kApart)...));
  }
  (std::make_integer_sequence<int, kWidth>());
  return partner + as_float(as_bits(value) ^ sign);
}

template <int kApart, class F>
HIPRESS_LANES F butterflies(F value) {
  if constexpr (kApart < Lanes<F>::kWidth) {
    return butterflies<kApart * 2>(butterfly<kApart>(value));
  } else {
    return value;
  }
}

/// Rotates one group; its size is a power of two.
template <class F>
HIPRESS_LANES void rotate_group(float* values, int size) {
  constexpr int kWidth = Lanes<F>::kWidth;
  const F scale = broadcast<F>(rotation_scale(size));
  for (int i = 0; i < size; i += kWidth) {
    F value;
    load(values + i, value);
    store(values + i, butterflies<1>(value * scale));
  }
  for (int apart = kWidth; apart < size; apart *= 2) {
    for (int first = 0; first < size; first += 2 * apart) {
      for (int i = first; i < first + apart; i += kWidth) {
        F a, b;
        load(values + i, a);
        load(values + i + apart, b);
        store(values + i, a + b);
        store(values + i + apart, a - b);
      }
    }
  }
}

template <class F>
__attribute__((noinline)) void rotate_block(float* values, int count) {
  for (int first = 0; first < count;) {
    const int size = rotation_size(first, count);
    if (size < Lanes<F>::kWidth) {
      rotate_group<float>(values + first, size);
    } else {
      rotate_group<F>(values + first, size);
    }
    first += size;
  }
}

}  // namespace hipress::kernels
