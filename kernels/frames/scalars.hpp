#pragma once

#include <cstdint>

#include "kernels/codec/lanes.hpp"

/// Scalar arithmetic of generated code: floats in double precision, whole numbers in 64 bits that
/// wrap. Every operation is defined for every input, with the same result everywhere.
namespace hipress::kernels {

HIPRESS_LANES std::int64_t wrapped(std::uint64_t value) { return static_cast<std::int64_t>(value); }
HIPRESS_LANES std::int64_t whole_sum(std::int64_t a, std::int64_t b) {
  return wrapped(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
HIPRESS_LANES std::int64_t whole_difference(std::int64_t a, std::int64_t b) {
  return wrapped(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
HIPRESS_LANES std::int64_t whole_product(std::int64_t a, std::int64_t b) {
  return wrapped(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
/// Quotient rounded towards zero; 0 if b is 0.
HIPRESS_LANES std::int64_t whole_quotient(std::int64_t a, std::int64_t b) {
  return b == 0 ? 0 : b == -1 ? whole_difference(0, a) : a / b;
}
/// Remainder with the sign of a; 0 if b is 0.
HIPRESS_LANES std::int64_t whole_remainder(std::int64_t a, std::int64_t b) {
  return b == 0 || b == -1 ? 0 : a % b;
}
HIPRESS_LANES std::int64_t shifted_left(std::int64_t value, std::int64_t by) {
  return by < 0 || by > 63 ? 0 : wrapped(static_cast<std::uint64_t>(value) << by);
}
HIPRESS_LANES std::int64_t shifted_right(std::int64_t value, std::int64_t by) {
  return value >> (by < 0 ? 0 : by > 63 ? 63 : by);
}

/// Rounds towards zero, saturating; 0 for NaN.
HIPRESS_LANES std::int64_t to_whole(double value) {
  if (!(value == value)) return 0;
  if (value >= 0x1p63) return INT64_MAX;
  if (value < -0x1p63) return INT64_MIN;
  return static_cast<std::int64_t>(value);
}

/// Bits of a number in fp32, without the sign.
HIPRESS_LANES std::int64_t bits_of_magnitude(double value) {
  return as_bits(static_cast<float>(value)) & 0x7fffffffu;
}
HIPRESS_LANES float float_of_bits(std::int64_t bits) {
  return as_float(static_cast<std::uint32_t>(bits));
}

/// 2^bits - 1, for 0 … 32 bits.
HIPRESS_LANES std::int64_t top_of_bits(std::int64_t bits) {
  return (std::int64_t{1} << (bits < 0 ? 0 : bits > 32 ? 32 : bits)) - 1;
}
/// Clamps to 0 … 2^bits - 1.
HIPRESS_LANES std::int64_t clamped_to_bits(std::int64_t value, std::int64_t bits) {
  const std::int64_t top = top_of_bits(bits);
  return value < 0 ? 0 : value > top ? top : value;
}
HIPRESS_LANES std::int64_t clamped_to_bits(double value, std::int64_t bits) {
  return clamped_to_bits(to_whole(value), bits);
}

/// Clamps float lanes to 0 … 2^bits - 1 and truncates them. More than 24 bits count as 24, so that
/// fp32 holds the limit exactly.
template <class F>
HIPRESS_LANES UnsignedLanes<F> lanes_clamped_to_bits(F value, std::int64_t bits) {
  const float top = static_cast<float>(top_of_bits(bits > 24 ? 24 : bits));
  // larger(x, 0) is 0 for NaN.
  return truncate(smaller(larger(value, F{}), broadcast<F>(top)));
}
template <class F>
HIPRESS_LANES UnsignedLanes<F> lanes_below_bits(UnsignedLanes<F> value, std::int64_t bits) {
  const UnsignedLanes<F> top = broadcast_bits<F>(static_cast<std::uint32_t>(top_of_bits(bits)));
  return select(less(top, value), top, value);
}

}  // namespace hipress::kernels
