#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>
#if defined(__x86_64__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

/// Lanes: one source of arithmetic serves a CUDA thread, a plain loop and every vector width.
///
/// An algorithm is written for a type F of float lanes: `float` itself (one lane: CUDA threads and
/// the plain host loop) or the vector type of the instruction set that the including file is
/// compiled for. Operators work on both; the functions below supply the rest. Everything is forced
/// inline, for speed and because the linker could pick an out-of-line copy compiled for AVX-512 on
/// a machine without it.
#ifdef __CUDACC__
#define HIPRESS_LANES __host__ __device__ __forceinline__
#else
#define HIPRESS_LANES inline __attribute__((always_inline))
#endif

namespace hipress::kernels {

/// Types that go with float lanes F: U is unsigned integer lanes, M the result of comparisons.
template <class F>
struct Lanes;

template <>
struct Lanes<float> {
  static constexpr int kWidth = 1;
  using U = std::uint32_t;
  using M = bool;
};

/// Double precision is used one lane at a time; its unsigned lanes are 64-bit counters.
template <>
struct Lanes<double> {
  static constexpr int kWidth = 1;
  using U = std::uint64_t;
  using M = bool;
};

template <class F>
using UnsignedLanes = typename Lanes<F>::U;
template <class F>
using MaskLanes = typename Lanes<F>::M;

// ---- one lane ----

template <class V>
requires(std::is_arithmetic_v<V>) HIPRESS_LANES bool less(V a, V b) { return a < b; }
template <class V>
requires(std::is_arithmetic_v<V>) HIPRESS_LANES bool at_least(V a, V b) { return a >= b; }
HIPRESS_LANES bool has_bit(std::uint32_t value, std::uint32_t bit) { return (value & bit) != 0; }
template <class V>
requires(std::is_arithmetic_v<V>) HIPRESS_LANES V select(bool condition, V yes, V no) {
  return condition ? yes : no;
}
/// Minimum, a < b ? a : b; returns b if either is NaN.
template <class V>
requires(std::is_floating_point_v<V>) HIPRESS_LANES V smaller(V a, V b) { return a < b ? a : b; }
/// Maximum, a > b ? a : b; returns b if either is NaN.
template <class V>
requires(std::is_floating_point_v<V>) HIPRESS_LANES V larger(V a, V b) { return a > b ? a : b; }
HIPRESS_LANES std::uint32_t as_bits(float value) {
  return __builtin_bit_cast(std::uint32_t, value);
}
HIPRESS_LANES float as_float(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
HIPRESS_LANES float infinity() { return as_float(0x7f800000u); }
HIPRESS_LANES float not_a_number() { return as_float(0x7fc00000u); }
HIPRESS_LANES bool is_finite(float value) { return (as_bits(value) & 0x7f800000u) != 0x7f800000u; }
/// Rounds towards zero; the value must lie in [0, 2^31).
HIPRESS_LANES std::uint32_t truncate(float value) { return static_cast<std::uint32_t>(value); }
/// Converts to float: exactly below 2^24. The value must be below 2^31.
HIPRESS_LANES float to_float(std::uint32_t value) {
  return static_cast<float>(static_cast<std::int32_t>(value));
}

/// Logical operations on masks; every() sets all lanes of a mask to one condition.
HIPRESS_LANES bool both(bool a, bool b) { return a && b; }
HIPRESS_LANES bool either(bool a, bool b) { return a || b; }
HIPRESS_LANES bool opposite(bool condition) { return !condition; }
template <class F>
requires(Lanes<F>::kWidth == 1) HIPRESS_LANES bool every(bool condition) { return condition; }

HIPRESS_LANES float magnitude(float value) { return as_float(as_bits(value) & 0x7fffffffu); }
HIPRESS_LANES float rounded_down(float value) { return __builtin_floorf(value); }
HIPRESS_LANES float square_root(float value) { return __builtin_sqrtf(value); }

/// Computes a + b * c, fused where available. Requires that b * c is exact, so that a fused
/// operation gives the same bits.
HIPRESS_LANES float plus_scaled(float a, float b, float c) { return a + b * c; }

/// Copies a value to all lanes. Subtracting 0 changes no number; adding 0 would change -0.
template <class F>
HIPRESS_LANES F broadcast(float value) {
  return value - F{};
}
template <class F>
HIPRESS_LANES UnsignedLanes<F> broadcast_bits(std::uint32_t value) {
  return value - UnsignedLanes<F>{};
}

HIPRESS_LANES void load(const float* from, float& to) { to = *from; }
HIPRESS_LANES void store(float* to, float value) { *to = value; }
HIPRESS_LANES void stream(float* to, float value) { *to = value; }
HIPRESS_LANES void load_16(const std::uint16_t* from, std::uint32_t& to) { to = *from; }
HIPRESS_LANES void store_16(std::uint16_t* to, std::uint32_t value) {
  *to = static_cast<std::uint16_t>(value);
}

/// Packs a mask: bit l of the result is lane l.
HIPRESS_LANES std::uint32_t bits_of_mask(bool mask) { return mask ? 1 : 0; }
/// Selects lane l from `yes` if bit l is set, else from `no`.
HIPRESS_LANES float select_by_bits(std::uint32_t bits, float yes, float no) {
  return (bits & 1) != 0 ? yes : no;
}
HIPRESS_LANES std::uint32_t select_by_bits(std::uint32_t bits, std::uint32_t yes,
                                           std::uint32_t no) {
  return (bits & 1) != 0 ? yes : no;
}
/// Lane numbers 0, 1, 2 ….
template <class F>
requires(Lanes<F>::kWidth == 1) HIPRESS_LANES UnsignedLanes<F> lane_numbers() { return 0; }
/// Looks up table[code] per lane; codes are below 2^kBits.
template <int kBits>
HIPRESS_LANES float look_up(const float* table, std::uint32_t code) {
  return table[code];
}

#ifndef __CUDACC__

// ---- the vectors of the instruction set this file is compiled for ----

#if defined(__AVX512F__)
inline constexpr int kVectorWidth = 16;
#elif defined(__AVX2__)
inline constexpr int kVectorWidth = 8;
#else
inline constexpr int kVectorWidth = 4;
#endif

using FloatVector = float __attribute__((vector_size(4 * kVectorWidth)));
using UnsignedVector = std::uint32_t __attribute__((vector_size(4 * kVectorWidth)));
using IntVector = std::int32_t __attribute__((vector_size(4 * kVectorWidth)));
using HalfVector = std::uint16_t __attribute__((vector_size(2 * kVectorWidth)));
#if defined(__AVX512F__)
using MaskVector = __mmask16;
#else
using MaskVector = IntVector;
#endif

template <>
struct Lanes<FloatVector> {
  static constexpr int kWidth = kVectorWidth;
  using U = UnsignedVector;
  using M = MaskVector;
};

HIPRESS_LANES UnsignedVector as_bits(FloatVector value) { return (UnsignedVector)value; }
HIPRESS_LANES FloatVector as_float(UnsignedVector bits) { return (FloatVector)bits; }
HIPRESS_LANES UnsignedVector truncate(FloatVector value) {
  return (UnsignedVector) __builtin_convertvector(value, IntVector);
}
HIPRESS_LANES FloatVector to_float(UnsignedVector value) {
  return __builtin_convertvector((IntVector)value, FloatVector);
}

HIPRESS_LANES void load(const float* from, FloatVector& to) {
  __builtin_memcpy(&to, from, sizeof to);
}
HIPRESS_LANES void store(float* to, FloatVector value) {
  __builtin_memcpy(to, &value, sizeof value);
}
HIPRESS_LANES void load_16(const std::uint16_t* from, UnsignedVector& to) {
  HalfVector narrow;
  __builtin_memcpy(&narrow, from, sizeof narrow);
  to = __builtin_convertvector(narrow, UnsignedVector);
}
HIPRESS_LANES void store_16(std::uint16_t* to, UnsignedVector value) {
  const HalfVector narrow = __builtin_convertvector(value, HalfVector);
  __builtin_memcpy(to, &narrow, sizeof narrow);
}

template <class F>
requires(Lanes<F>::kWidth == kVectorWidth) HIPRESS_LANES UnsignedLanes<F> lane_numbers() {
  UnsignedVector numbers = {};
  for (int lane = 0; lane < kVectorWidth; ++lane) numbers[lane] = lane;
  return numbers;
}

HIPRESS_LANES FloatVector plus_scaled(FloatVector a, FloatVector b, float c) {
#if defined(__AVX512F__)
  return (FloatVector)_mm512_fmadd_ps((__m512)b, _mm512_set1_ps(c), (__m512)a);
#else
  return a + b * c;
#endif
}

HIPRESS_LANES MaskVector both(MaskVector a, MaskVector b) { return a & b; }
HIPRESS_LANES MaskVector either(MaskVector a, MaskVector b) { return a | b; }
HIPRESS_LANES MaskVector opposite(MaskVector condition) { return ~condition; }

HIPRESS_LANES FloatVector magnitude(FloatVector value) {
  return as_float(as_bits(value) & 0x7fffffffu);
}
HIPRESS_LANES FloatVector rounded_down(FloatVector value) {
#if defined(__AVX512F__)
  return (FloatVector)_mm512_roundscale_ps((__m512)value,
                                           _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
  return (FloatVector)_mm256_floor_ps((__m256)value);
#else
  for (int lane = 0; lane < kVectorWidth; ++lane) value[lane] = __builtin_floorf(value[lane]);
  return value;
#endif
}
HIPRESS_LANES FloatVector square_root(FloatVector value) {
#if defined(__AVX512F__)
  return (FloatVector)_mm512_sqrt_ps((__m512)value);
#elif defined(__AVX2__)
  return (FloatVector)_mm256_sqrt_ps((__m256)value);
#else
  for (int lane = 0; lane < kVectorWidth; ++lane) value[lane] = __builtin_sqrtf(value[lane]);
  return value;
#endif
}

/// Rotates lanes by kBy: lane l of the result is lane l + kBy of `value`, cyclically.
template <int kBy, class V>
HIPRESS_LANES V rotate_lanes(V value) {
  return [&]<int... kLane>(std::integer_sequence<int, kLane...>) __attribute__((always_inline)) {
    return V(__builtin_shufflevector(value, value, ((kLane + kBy) % kVectorWidth)...));
  }
  (std::make_integer_sequence<int, kVectorWidth>());
}

#if defined(__AVX512F__)

HIPRESS_LANES MaskVector less(FloatVector a, FloatVector b) {
  return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ);
}
HIPRESS_LANES MaskVector less(UnsignedVector a, UnsignedVector b) {
  return _mm512_cmplt_epu32_mask((__m512i)a, (__m512i)b);
}
HIPRESS_LANES MaskVector at_least(FloatVector a, FloatVector b) {
  return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GE_OQ);
}
HIPRESS_LANES MaskVector has_bit(UnsignedVector value, std::uint32_t bit) {
  return _mm512_test_epi32_mask((__m512i)value, (__m512i)broadcast_bits<FloatVector>(bit));
}
HIPRESS_LANES FloatVector select(MaskVector mask, FloatVector yes, FloatVector no) {
  return (FloatVector)_mm512_mask_blend_ps(mask, (__m512)no, (__m512)yes);
}
HIPRESS_LANES UnsignedVector select(MaskVector mask, UnsignedVector yes, UnsignedVector no) {
  return (UnsignedVector)_mm512_mask_blend_epi32(mask, (__m512i)no, (__m512i)yes);
}
HIPRESS_LANES FloatVector smaller(FloatVector a, FloatVector b) {
  return (FloatVector)_mm512_min_ps((__m512)a, (__m512)b);
}
HIPRESS_LANES FloatVector larger(FloatVector a, FloatVector b) {
  return (FloatVector)_mm512_max_ps((__m512)a, (__m512)b);
}
HIPRESS_LANES std::uint32_t bits_of_mask(MaskVector mask) { return mask; }
HIPRESS_LANES MaskVector mask_of_bits(std::uint32_t bits) { return static_cast<MaskVector>(bits); }

/// Non-temporal store, past the caches, for large results not read again soon. `to` must be aligned
/// to the vector.
HIPRESS_LANES void stream(float* to, FloatVector value) { _mm512_stream_ps(to, (__m512)value); }
/// Stores the chosen lanes contiguously. Both outputs need room for a whole vector.
HIPRESS_LANES void store_chosen(std::uint32_t chosen, FloatVector values, float* to_values,
                                UnsignedVector numbers, std::uint32_t* to_numbers) {
  const auto mask = static_cast<__mmask16>(chosen);
  _mm512_storeu_ps(to_values, _mm512_maskz_compress_ps(mask, (__m512)values));
  _mm512_storeu_si512(to_numbers, _mm512_maskz_compress_epi32(mask, (__m512i)numbers));
}
template <int kBits>
HIPRESS_LANES FloatVector look_up(const float* table, UnsignedVector code) {
  if constexpr (kBits <= 4) {
    return (FloatVector)_mm512_permutexvar_ps((__m512i)code, _mm512_loadu_ps(table));
  } else {
    return (FloatVector)_mm512_i32gather_ps((__m512i)code, table, 4);
  }
}

#else

HIPRESS_LANES MaskVector less(FloatVector a, FloatVector b) { return a < b; }
HIPRESS_LANES MaskVector less(UnsignedVector a, UnsignedVector b) { return a < b; }
HIPRESS_LANES MaskVector at_least(FloatVector a, FloatVector b) { return a >= b; }
HIPRESS_LANES MaskVector has_bit(UnsignedVector value, std::uint32_t bit) {
  return (value & broadcast_bits<FloatVector>(bit)) == broadcast_bits<FloatVector>(bit);
}
HIPRESS_LANES FloatVector select(MaskVector mask, FloatVector yes, FloatVector no) {
  return mask ? yes : no;
}
HIPRESS_LANES UnsignedVector select(MaskVector mask, UnsignedVector yes, UnsignedVector no) {
  return mask ? yes : no;
}
HIPRESS_LANES MaskVector mask_of_bits(std::uint32_t bits) {
  const UnsignedVector own_bit = broadcast_bits<FloatVector>(1) << lane_numbers<FloatVector>();
  return (broadcast_bits<FloatVector>(bits) & own_bit) == own_bit;
}

#if defined(__AVX2__)
HIPRESS_LANES FloatVector smaller(FloatVector a, FloatVector b) {
  return (FloatVector)_mm256_min_ps((__m256)a, (__m256)b);
}
HIPRESS_LANES FloatVector larger(FloatVector a, FloatVector b) {
  return (FloatVector)_mm256_max_ps((__m256)a, (__m256)b);
}
HIPRESS_LANES std::uint32_t bits_of_mask(MaskVector mask) {
  return static_cast<std::uint32_t>(_mm256_movemask_ps((__m256)mask));
}
HIPRESS_LANES void stream(float* to, FloatVector value) { _mm256_stream_ps(to, (__m256)value); }
template <int kBits>
HIPRESS_LANES FloatVector look_up(const float* table, UnsignedVector code) {
  if constexpr (kBits <= 3) {
    return (FloatVector)_mm256_permutevar8x32_ps(_mm256_loadu_ps(table), (__m256i)code);
  } else {
    return (FloatVector)_mm256_i32gather_ps(table, (__m256i)code, 4);
  }
}
#else
HIPRESS_LANES FloatVector smaller(FloatVector a, FloatVector b) { return a < b ? a : b; }
HIPRESS_LANES FloatVector larger(FloatVector a, FloatVector b) { return a > b ? a : b; }
#if defined(__SSE2__)
HIPRESS_LANES std::uint32_t bits_of_mask(MaskVector mask) {
  return static_cast<std::uint32_t>(_mm_movemask_ps((__m128)mask));
}
HIPRESS_LANES void stream(float* to, FloatVector value) { _mm_stream_ps(to, (__m128)value); }
#else
HIPRESS_LANES std::uint32_t bits_of_mask(MaskVector mask) {
  std::uint32_t bits = 0;
  for (int lane = 0; lane < kVectorWidth; ++lane) bits |= (mask[lane] & 1u) << lane;
  return bits;
}
HIPRESS_LANES void stream(float* to, FloatVector value) { store(to, value); }
#endif
template <int kBits>
HIPRESS_LANES FloatVector look_up(const float* table, UnsignedVector code) {
  FloatVector found = {};
  for (int lane = 0; lane < kVectorWidth; ++lane) found[lane] = table[code[lane]];
  return found;
}
#endif

#endif

template <class F>
requires(Lanes<F>::kWidth == kVectorWidth) HIPRESS_LANES MaskVector every(bool condition) {
  return mask_of_bits(condition ? ~0u : 0u);
}

HIPRESS_LANES FloatVector select_by_bits(std::uint32_t bits, FloatVector yes, FloatVector no) {
  return select(mask_of_bits(bits), yes, no);
}
HIPRESS_LANES UnsignedVector select_by_bits(std::uint32_t bits, UnsignedVector yes,
                                            UnsignedVector no) {
  return select(mask_of_bits(bits), yes, no);
}

/// Makes streamed stores visible to other threads.
HIPRESS_LANES void finish_streaming() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

#endif  // __CUDACC__

/// Divisor of values. Instead of dividing by a power of two, it multiplies by the reciprocal. That
/// is faster and gives the same bits, since both operations round the same exact result. An encode
/// that divides by 3 takes 10 to 36 % longer than one that does not divide; by 2, at most 10 %.
struct Divisor {
  float by = 1;
  float factor = 1;  ///< 1 / by if that is exact, else 1
  bool divides = false;
  bool multiplies = false;

  /// Requires a finite `by` ≥ 1.
  HIPRESS_LANES static Divisor of(float by) {
    const bool power_of_two = (as_bits(by) & 0x007fffffu) == 0 && by < 0x1p100f;
    return {by, power_of_two ? 1 / by : 1.0f, by != 1, power_of_two};
  }

  template <class F>
  HIPRESS_LANES F operator()(F value) const {
    if (!divides) return value;
    if (multiplies) return value * broadcast<F>(factor);
    return value / broadcast<F>(by);
  }
};

}  // namespace hipress::kernels
