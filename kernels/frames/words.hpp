#pragma once

#include <cstdint>
#include <initializer_list>

#include "kernels/codec/lanes.hpp"
#include "kernels/codec/message.hpp"

/// Words of 32 elements in registers, as host loops use them, with loads and stores separate from
/// the arithmetic. Every function that is not forced inline is a template on F; see
/// host/loops_body.hpp.
namespace hipress::kernels {

/// Slices with at least this many elements are written with non-temporal stores, past the caches.
inline constexpr std::int64_t kStreamElements = std::int64_t{1} << 20;

template <class F>
inline constexpr int kVectors = kWordElements / Lanes<F>::kWidth;

template <class F>
struct Word {
  F part[kVectors<F>];
};

/// Prefetches the word one tile (1024 floats) ahead, because processors prefetch too little if a
/// word takes much arithmetic. Addresses past the end are harmless.
HIPRESS_LANES void prefetch_word(const float* word) {
  for (const int line : {0, 16}) __builtin_prefetch(word + 1024 + line);
}

/// Loads the first `count` floats at `from`, then zeros.
template <class F>
__attribute__((noinline)) Word<F> load_part_of_word(const float* from, int count) {
  float padded[kWordElements] = {};
  for (int i = 0; i < count; ++i) padded[i] = from[i];
  Word<F> word;
  for (int v = 0; v < kVectors<F>; ++v) load(padded + v * Lanes<F>::kWidth, word.part[v]);
  return word;
}

template <class F>
HIPRESS_LANES Word<F> load_word(const float* from, int count) {
  if (count != kWordElements) return load_part_of_word<F>(from, count);
  Word<F> word;
  for (int v = 0; v < kVectors<F>; ++v) load(from + v * Lanes<F>::kWidth, word.part[v]);
  return word;
}

template <class F>
__attribute__((noinline)) void store_part_of_word(float* to, const Word<F>& word, int count) {
  float padded[kWordElements];
  for (int v = 0; v < kVectors<F>; ++v) store(padded + v * Lanes<F>::kWidth, word.part[v]);
  for (int i = 0; i < count; ++i) to[i] = padded[i];
}

template <class F>
HIPRESS_LANES void store_word(float* to, const Word<F>& word, int count) {
  if (count != kWordElements) return store_part_of_word<F>(to, word, count);
  for (int v = 0; v < kVectors<F>; ++v) store(to + v * Lanes<F>::kWidth, word.part[v]);
}

/// True for large results aligned to a vector: they are written past the caches, as they are not
/// read again soon.
template <class F>
HIPRESS_LANES bool should_stream(const float* values, std::int64_t elements) {
  return elements >= kStreamElements && reinterpret_cast<std::uintptr_t>(values) % sizeof(F) == 0;
}

template <class F>
HIPRESS_LANES void stream_word(float* to, const Word<F>& word) {
  for (int v = 0; v < kVectors<F>; ++v) stream(to + v * Lanes<F>::kWidth, word.part[v]);
}

}  // namespace hipress::kernels
