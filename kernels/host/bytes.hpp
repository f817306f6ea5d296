#pragma once

#include <cstdint>

#include "kernels/codec/lanes.hpp"
#include "kernels/frames/words.hpp"

/// Stores and loads the codes of a word of 32 elements as bytes, half bytes or bit planes
/// (frames/block_quantizer.hpp defines the layout).
namespace hipress::kernels {

HIPRESS_LANES void load_8(const std::uint8_t* from, std::uint32_t& to) { to = *from; }
HIPRESS_LANES void store_8(std::uint8_t* to, std::uint32_t value) {
  *to = static_cast<std::uint8_t>(value);
}

using ByteVector = std::uint8_t __attribute__((vector_size(kVectorWidth)));

HIPRESS_LANES void load_8(const std::uint8_t* from, UnsignedVector& to) {
#if defined(__AVX512F__)
  to = (UnsignedVector)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)from));
#elif defined(__AVX2__)
  to = (UnsignedVector)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)from));
#else
  ByteVector bytes;
  __builtin_memcpy(&bytes, from, sizeof bytes);
  to = __builtin_convertvector(bytes, UnsignedVector);
#endif
}

/// Stores the lowest byte of each lane; the values must be below 256.
HIPRESS_LANES void store_8(std::uint8_t* to, UnsignedVector value) {
#if defined(__AVX512F__)
  _mm_storeu_si128((__m128i*)to, _mm512_cvtepi32_epi8((__m512i)value));
#elif defined(__AVX2__)
  const __m128i low = _mm256_castsi256_si128((__m256i)value);
  const __m128i high = _mm256_extracti128_si256((__m256i)value, 1);
  const __m128i halves = _mm_packus_epi32(low, high);
  _mm_storel_epi64((__m128i*)to, _mm_packus_epi16(halves, halves));
#else
  const ByteVector bytes = __builtin_convertvector(value, ByteVector);
  __builtin_memcpy(to, &bytes, sizeof bytes);
#endif
}

template <class F>
struct WordCodes {
  UnsignedLanes<F> part[kVectors<F>];
};

template <class F>
HIPRESS_LANES void store_word_codes(int bits, std::uint8_t* to, const WordCodes<F>& codes) {
  constexpr int kWidth = Lanes<F>::kWidth, kHalf = kVectors<F> / 2;
  if (bits == 8) {
    for (int v = 0; v < kVectors<F>; ++v) store_8(to + v * kWidth, codes.part[v]);
  } else if (bits == 4) {
    for (int v = 0; v < kHalf; ++v) {
      store_8(to + v * kWidth, codes.part[v] | codes.part[v + kHalf] << 4);
    }
  } else {
    for (int p = 0; p < bits; ++p) {
      std::uint32_t plane = 0;
      for (int v = 0; v < kVectors<F>; ++v) {
        plane |= bits_of_mask(has_bit(codes.part[v], 1u << p)) << (v * kWidth);
      }
      __builtin_memcpy(to + p * sizeof plane, &plane, sizeof plane);
    }
  }
}

template <class F>
HIPRESS_LANES WordCodes<F> load_word_codes(int bits, const std::uint8_t* from) {
  constexpr int kWidth = Lanes<F>::kWidth, kHalf = kVectors<F> / 2;
  WordCodes<F> codes;
  if (bits == 8) {
    for (int v = 0; v < kVectors<F>; ++v) load_8(from + v * kWidth, codes.part[v]);
  } else if (bits == 4) {
    for (int v = 0; v < kHalf; ++v) {
      UnsignedLanes<F> both;
      load_8(from + v * kWidth, both);
      codes.part[v] = both & 15u;
      codes.part[v + kHalf] = both >> 4;
    }
  } else {
    for (UnsignedLanes<F>& part : codes.part) part = broadcast_bits<F>(0);
    for (int p = 0; p < bits; ++p) {
      std::uint32_t plane;
      __builtin_memcpy(&plane, from + p * sizeof plane, sizeof plane);
      for (int v = 0; v < kVectors<F>; ++v) {
        codes.part[v] =
            codes.part[v] |
            select_by_bits(plane >> (v * kWidth), broadcast_bits<F>(1u << p), broadcast_bits<F>(0));
      }
    }
  }
  return codes;
}

}  // namespace hipress::kernels
