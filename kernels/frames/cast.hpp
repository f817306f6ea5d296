#pragma once

#include <cstdint>

#include "kernels/codec/item.hpp"
#include "kernels/codec/lanes.hpp"

/// Conversions between fp32 and the two 16-bit formats fp16 and bf16. They round to nearest even,
/// and overflow to infinity. A NaN becomes a quiet NaN with the upper bits of its payload, as it
/// does in x86's own instructions. Codes are the low 16 bits of unsigned lanes.
namespace hipress::kernels {

/// Size of a slice's message in bytes: 2 per element, rounded up to a multiple of 4.
HIPRESS_LANES std::int64_t cast_message_bytes(std::int64_t elements) {
  return elements <= 0 ? 0 : (elements + elements % 2) * 2;
}

struct Fp16 {
  static constexpr const char* kName = "fp16";
  static constexpr ValueType kValues = ValueType::kFloat16;
  static constexpr const char* kHelp = "IEEE half precision, element by element";

  template <class F>
  HIPRESS_LANES static UnsignedLanes<F> encode(F value) {
    using U = UnsignedLanes<F>;
    const U sign = (as_bits(value) >> 16) & 0x8000u;
    const U magnitude = as_bits(value) & 0x7fffffffu;
    // Rebias the exponent and round to nearest even: add just under half a unit of the last place,
    // and 1 more if the last bit is 1.
    const U normal = (magnitude - 0x37ff'f001u + ((magnitude >> 13) & 1u)) >> 13;
    // Below 2^-14, fp16 has steps of 2^-24. So has fp32 from 0.5 on: adding 0.5 rounds to them.
    const U tiny = as_bits(as_float(magnitude) + broadcast<F>(0.5f)) - 0x3f000000u;
    const U nan = ((magnitude >> 13) & 0x3ffu) | 0x7e00u;
    U code = select(less(magnitude, broadcast_bits<F>(0x38800000)), tiny, normal);
    code = select(less(magnitude, broadcast_bits<F>(0x47800000)), code, broadcast_bits<F>(0x7c00));
    code = select(less(broadcast_bits<F>(0x7f800000), magnitude), nan, code);
    return sign | code;
  }

  template <class F>
  HIPRESS_LANES static F decode(UnsignedLanes<F> code) {
    using U = UnsignedLanes<F>;
    const U sign = (code & 0x8000u) << 16;
    const U magnitude = code & 0x7fffu;
    const U normal = (magnitude << 13) + 0x38000000u;
    const U tiny = as_bits(to_float(magnitude) * broadcast<F>(0x1p-24f));
    const U nan = (magnitude << 13) | 0x7fc00000u;
    U bits = select(less(magnitude, broadcast_bits<F>(0x0400)), tiny, normal);
    bits = select(less(magnitude, broadcast_bits<F>(0x7c00)), bits, broadcast_bits<F>(0x7f800000));
    bits = select(less(broadcast_bits<F>(0x7c00), magnitude), nan, bits);
    return as_float(sign | bits);
  }

#ifndef __CUDACC__
#if defined(__AVX512F__)
  HIPRESS_LANES static void store(std::uint16_t* to, FloatVector value) {
    const __m256i codes = _mm512_cvtps_ph((__m512)value, _MM_FROUND_TO_NEAREST_INT);
    __builtin_memcpy(to, &codes, sizeof codes);
  }
  HIPRESS_LANES static FloatVector load(const std::uint16_t* from) {
    __m256i codes;
    __builtin_memcpy(&codes, from, sizeof codes);
    return (FloatVector)_mm512_cvtph_ps(codes);
  }
#elif defined(__F16C__)
  HIPRESS_LANES static void store(std::uint16_t* to, FloatVector value) {
    const __m128i codes = _mm256_cvtps_ph((__m256)value, _MM_FROUND_TO_NEAREST_INT);
    __builtin_memcpy(to, &codes, sizeof codes);
  }
  HIPRESS_LANES static FloatVector load(const std::uint16_t* from) {
    __m128i codes;
    __builtin_memcpy(&codes, from, sizeof codes);
    return (FloatVector)_mm256_cvtph_ps(codes);
  }
#endif
#endif
};

struct Bf16 {
  static constexpr const char* kName = "bf16";
  static constexpr ValueType kValues = ValueType::kBfloat16;
  static constexpr const char* kHelp =
      "bfloat16 (fp32's range, 8 bits of precision), element by element";

  template <class F>
  HIPRESS_LANES static UnsignedLanes<F> encode(F value) {
    using U = UnsignedLanes<F>;
    const U bits = as_bits(value);
    const U rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const U nan = (bits >> 16) | 0x40u;
    return select(less(broadcast_bits<F>(0x7f800000), bits & 0x7fffffffu), nan, rounded);
  }

  template <class F>
  HIPRESS_LANES static F decode(UnsignedLanes<F> code) {
    return as_float(code << 16);
  }
};

/// Writes the codes of the lanes' values, with a machine instruction where available.
template <class Format, class F>
HIPRESS_LANES void store_cast(std::uint16_t* to, F value) {
  if constexpr (requires { Format::store(to, value); }) {
    Format::store(to, value);
  } else {
    store_16(to, Format::template encode<F>(value));
  }
}

template <class Format, class F>
HIPRESS_LANES F load_cast(const std::uint16_t* from) {
  if constexpr (Lanes<F>::kWidth > 1 && requires { Format::load(from); }) {
    return Format::load(from);
  } else {
    UnsignedLanes<F> code;
    load_16(from, code);
    return Format::template decode<F>(code);
  }
}

}  // namespace hipress::kernels
