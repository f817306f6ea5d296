#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/codec/item.hpp"
#include "kernels/frames/cast.hpp"
#include "kernels/frames/reduction.hpp"
#ifndef __CUDACC__
#include "kernels/frames/words.hpp"
#endif

/// Conversions between gradients in memory (ValueType) and fp32, the type of all arithmetic.
///
/// Host loops convert a tile at a time: the tile is widened into an fp32 copy that stays in the L1
/// cache, and the machine code for fp32 then works on the copy. Every function here that is not
/// forced inline is a template on F; host/loops_body.hpp explains why.
namespace hipress::kernels {

/// Loads element i, widened.
HIPRESS_LANES float load_value(const void* values, ValueType type, std::int64_t i) {
  if (type == ValueType::kFloat32) return static_cast<const float*>(values)[i];
  const std::uint32_t code = static_cast<const std::uint16_t*>(values)[i];
  return type == ValueType::kFloat16 ? Fp16::decode<float>(code) : Bf16::decode<float>(code);
}

/// Stores `value` as element i, rounded.
HIPRESS_LANES void store_value(void* values, ValueType type, std::int64_t i, float value) {
  if (type == ValueType::kFloat32) {
    static_cast<float*>(values)[i] = value;
  } else {
    static_cast<std::uint16_t*>(values)[i] = static_cast<std::uint16_t>(
        type == ValueType::kFloat16 ? Fp16::encode(value) : Bf16::encode(value));
  }
}

#ifdef __CUDACC__

// ---- a thread's elements ----

/// Calls `function` with the type as a compile-time constant, so that its code is instantiated per
/// type.
template <class Function>
__device__ void with_value_type(ValueType type, const Function& function) {
  if (type == ValueType::kFloat32) {
    function(std::integral_constant<ValueType, ValueType::kFloat32>());
  } else if (type == ValueType::kFloat16) {
    function(std::integral_constant<ValueType, ValueType::kFloat16>());
  } else {
    function(std::integral_constant<ValueType, ValueType::kBfloat16>());
  }
}

/// Loads elements first, first + stride … before `end`, widened; 0 past the end. One branch by type
/// lets all loads be in flight together.
template <int kRows>
__device__ void load_rows(const void* values, ValueType type, std::int64_t first, int stride,
                          std::int64_t end, float (&rows)[kRows]) {
  with_value_type(type, [&](auto constant) {
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const std::int64_t element = first + row * stride;
      rows[row] = element < end ? load_value(values, decltype(constant)::value, element) : 0.0f;
    }
  });
}

template <int kRows>
__device__ void store_rows(void* values, ValueType type, std::int64_t first, int stride,
                           std::int64_t end, const float (&rows)[kRows]) {
  with_value_type(type, [&](auto constant) {
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const std::int64_t element = first + row * stride;
      if (element < end) store_value(values, decltype(constant)::value, element, rows[row]);
    }
  });
}

#else

// ---- words of 16-bit codes ----

/// Loads the first `count` codes at `from` as numbers, then zeros.
template <class Format, class F>
HIPRESS_LANES Word<F> load_codes(const std::uint16_t* from, int count) {
  std::uint16_t padded[kWordElements] = {};
  if (count != kWordElements) {
    for (int i = 0; i < count; ++i) padded[i] = from[i];
    from = padded;
  }
  Word<F> word;
  for (int v = 0; v < kVectors<F>; ++v) {
    word.part[v] = load_cast<Format, F>(from + v * Lanes<F>::kWidth);
  }
  return word;
}

/// Writes the codes of the first `count` numbers.
template <class Format, class F>
HIPRESS_LANES void store_codes(std::uint16_t* to, const Word<F>& word, int count) {
  std::uint16_t padded[kWordElements];
  std::uint16_t* const codes = count == kWordElements ? to : padded;
  for (int v = 0; v < kVectors<F>; ++v) {
    store_cast<Format>(codes + v * Lanes<F>::kWidth, word.part[v]);
  }
  if (count != kWordElements) {
    for (int i = 0; i < count; ++i) to[i] = padded[i];
  }
}

// ---- ranges ----

template <class Format, class F>
HIPRESS_LANES void widen_codes(const std::uint16_t* from, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; i += kWordElements) {
    // Prefetches the same line of the next tile; see prefetch_word().
    __builtin_prefetch(from + i + kTileElements);
    const int in_word = elements_in_word(count - i, 0);
    if (in_word == kWordElements) {
      store_word(to + i, load_codes<Format, F>(from + i, kWordElements), kWordElements);
    } else {
      store_word(to + i, load_codes<Format, F>(from + i, in_word), in_word);
    }
  }
}

template <class Format, class F>
HIPRESS_LANES void round_to_codes(const float* from, std::int64_t count, std::uint16_t* to) {
  for (std::int64_t i = 0; i < count; i += kWordElements) {
    const int in_word = elements_in_word(count - i, 0);
    if (in_word == kWordElements) {
      store_codes<Format>(to + i, load_word<F>(from + i, kWordElements), kWordElements);
    } else {
      store_codes<Format>(to + i, load_word<F>(from + i, in_word), in_word);
    }
  }
}

/// Widens: to[i] = values[first + i], for i < count.
template <class F>
__attribute__((noinline)) void widen(const void* values, ValueType type, std::int64_t first,
                                     std::int64_t count, float* to) {
  if (type == ValueType::kFloat32) {
    __builtin_memcpy(to, static_cast<const float*>(values) + first, count * sizeof(float));
  } else {
    const auto* codes = static_cast<const std::uint16_t*>(values) + first;
    if (type == ValueType::kFloat16) {
      widen_codes<Fp16, F>(codes, count, to);
    } else {
      widen_codes<Bf16, F>(codes, count, to);
    }
  }
}

/// Rounds: values[first + i] = from[i], for i < count.
template <class F>
__attribute__((noinline)) void round_to(void* values, ValueType type, std::int64_t first,
                                        std::int64_t count, const float* from) {
  if (type == ValueType::kFloat32) {
    __builtin_memcpy(static_cast<float*>(values) + first, from, count * sizeof(float));
  } else {
    auto* codes = static_cast<std::uint16_t*>(values) + first;
    if (type == ValueType::kFloat16) {
      round_to_codes<Fp16, F>(from, count, codes);
    } else {
      round_to_codes<Bf16, F>(from, count, codes);
    }
  }
}

/// Elements [first, first + count) in fp32: in place if they are fp32, else widened into `room`.
template <class F>
HIPRESS_LANES const float* in_fp32(const void* values, ValueType type, std::int64_t first,
                                   std::int64_t count, float* room) {
  if (type == ValueType::kFloat32) return static_cast<const float*>(values) + first;
  widen<F>(values, type, first, count, room);
  return room;
}

/// Number of elements that the loops below process at a time: all if they are fp32, else a tile.
HIPRESS_LANES std::int64_t elements_at_once(ValueType type, std::int64_t elements) {
  return type == ValueType::kFloat32 ? elements : std::int64_t{kTileElements};
}

/// Calls `read(inputs, first, count)` for all of an array, in order; `inputs` are its elements
/// [first, first + count) in fp32, and `first` is a multiple of kTileElements.
template <class F, class Read>
HIPRESS_LANES void read_in_fp32(const void* values, ValueType type, std::int64_t elements,
                                const Read& read) {
  alignas(64) float room[kTileElements];
  const std::int64_t most = elements_at_once(type, elements);
  for (std::int64_t first = 0; first < elements; first += most) {
    const std::int64_t count = elements - first < most ? elements - first : most;
    read(in_fp32<F>(values, type, first, count, room), first, count);
  }
}

/// Previous content that `write` needs: none, or the current elements.
enum class Before { kUnknown, kThere };

/// Calls `write(results, first, count)` for all of an array, as read_in_fp32() calls `read`, and
/// stores the results. With Before::kThere, `results` holds the current elements at first.
template <class F, class Write>
HIPRESS_LANES void write_in_fp32(void* values, ValueType type, std::int64_t elements, Before before,
                                 const Write& write) {
  alignas(64) float room[kTileElements];
  const bool rounds = type != ValueType::kFloat32;
  const std::int64_t most = elements_at_once(type, elements);
  for (std::int64_t first = 0; first < elements; first += most) {
    const std::int64_t count = elements - first < most ? elements - first : most;
    if (rounds && before == Before::kThere) widen<F>(values, type, first, count, room);
    write(rounds ? room : static_cast<float*>(values) + first, first, count);
    if (rounds) round_to<F>(values, type, first, count, room);
  }
}

#endif  // __CUDACC__

}  // namespace hipress::kernels
