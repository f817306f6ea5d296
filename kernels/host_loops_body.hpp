#pragma once

#include <cstdint>

#include "kernels/casts.hpp"
#include "kernels/host_loops.hpp"
#include "kernels/slice.hpp"
#include "kernels/words.hpp"

/// The bodies of the host loops that serve every algorithm, for float lanes F. Included by
/// isa_*.cpp only, each compiled for its own instruction set: whatever is not forced inline here
/// must be a template on F, so that no function compiled for one instruction set can stand in for
/// another's.
namespace hipress::kernels {

// ---- decoding, merging and casting ----

/// x = x / divisor, where that changes anything.
template <class F>
HIPRESS_LANES void divide(Word<F>& word, float divisor) {
  if (divisor == 1) return;
  for (F& part : word.part) part = part / broadcast<F>(divisor);
}

/// Decoded words of one message of planes.
template <class F, int kPlanes>
struct PlaneReader {
  const std::uint32_t* planes;
  const float* levels;

  HIPRESS_LANES Word<F> operator()(std::int64_t word, int /*count*/) const {
    Word<F> decoded;
    for (int v = 0; v < kVectors<F>; ++v) {
      decoded.part[v] =
          level_of_bits<kPlanes, F>(planes + word * kPlanes, v * Lanes<F>::kWidth, levels);
    }
    return decoded;
  }
};

/// Decoded words of one message of casts.
template <class F, class Format>
struct CastReader {
  const std::uint16_t* codes;

  HIPRESS_LANES Word<F> operator()(std::int64_t word, int count) const {
    const std::uint16_t* from = codes + word * kWordElements;
    std::uint16_t padded[kWordElements] = {};
    if (count != kWordElements) {
      for (int i = 0; i < count; ++i) padded[i] = from[i];
      from = padded;
    }
    Word<F> decoded;
    for (int v = 0; v < kVectors<F>; ++v) {
      decoded.part[v] = load_cast<Format, F>(from + v * Lanes<F>::kWidth);
    }
    return decoded;
  }
};

/// Words of an array as they are.
template <class F>
struct RawReader {
  const float* values;

  HIPRESS_LANES Word<F> operator()(std::int64_t word, int count) const {
    return load_word<F>(values + word * kWordElements, count);
  }
};

/// x = d
template <class F, class Reader>
HIPRESS_LANES void overwrite(const Reader& reader, float* values, std::int64_t elements) {
  const std::int64_t full_words = elements / kWordElements;
  if (should_stream<F>(values, elements)) {
    for (std::int64_t word = 0; word < full_words; ++word) {
      stream_word(values + word * kWordElements, reader(word, kWordElements));
    }
    finish_streaming();
  } else {
    for (std::int64_t word = 0; word < full_words; ++word) {
      store_word(values + word * kWordElements, reader(word, kWordElements), kWordElements);
    }
  }
  if (const int count = elements_in_word(elements, full_words); count > 0) {
    store_word(values + full_words * kWordElements, reader(full_words, count), count);
  }
}

/// The divisors of x = (x / own + d1 + d2 + …) / sum.
struct Divisors {
  float own = 1;
  float sum = 1;
};

/// Adds word `word` of d1, d2 … given by readers(0), readers(1) …, between the divisions.
template <class F, class Readers>
HIPRESS_LANES void add_up_word(const Readers& readers, std::size_t count_of_readers,
                               std::int64_t word, int count, float* values, Divisors divisors) {
  Word<F> sum = load_word<F>(values + word * kWordElements, count);
  divide(sum, divisors.own);
  for (std::size_t i = 0; i < count_of_readers; ++i) {
    const Word<F> term = readers(i)(word, count);
    for (int v = 0; v < kVectors<F>; ++v) sum.part[v] = sum.part[v] + term.part[v];
  }
  divide(sum, divisors.sum);
  store_word(values + word * kWordElements, sum, count);
}

template <class F, class Readers>
HIPRESS_LANES void add_up(const Readers& readers, std::size_t count_of_readers, float* values,
                          std::int64_t elements, Divisors divisors) {
  const std::int64_t full_words = elements / kWordElements;
  for (std::int64_t word = 0; word < full_words; ++word) {
    add_up_word<F>(readers, count_of_readers, word, kWordElements, values, divisors);
  }
  if (const int count = elements_in_word(elements, full_words); count > 0) {
    add_up_word<F>(readers, count_of_readers, full_words, count, values, divisors);
  }
}

template <class F, int kPlanes = 1>
HIPRESS_LANES void decode_slice(int planes, const PlaneSource* sources, std::size_t count,
                                const DecodeItem& item) {
  if constexpr (kPlanes < kMostPlanes) {
    if (planes > kPlanes) return decode_slice<F, kPlanes + 1>(planes, sources, count, item);
  }
  const auto reader = [sources](std::size_t i) __attribute__((always_inline)) {
    return PlaneReader<F, kPlanes>{sources[i].planes, sources[i].levels};
  };
  if (item.mode == DecodeMode::kOverwrite) {
    overwrite<F>(reader(0), item.values, item.elements);
  } else {
    add_up<F>(reader, count, item.values, item.elements, {item.own_divisor, item.sum_divisor});
  }
}

template <class F, class Format>
HIPRESS_LANES void encode_cast_slice(const EncodeItem& item) {
  auto* codes = reinterpret_cast<std::uint16_t*>(item.message);
  const auto cast_word = [&](std::int64_t word, int count, std::uint16_t* to)
      __attribute__((always_inline)) {
    Word<F> inputs = load_word<F>(item.values + word * kWordElements, count);
    divide(inputs, item.divisor);
    for (int v = 0; v < kVectors<F>; ++v) {
      store_cast<Format>(to + v * Lanes<F>::kWidth, inputs.part[v]);
    }
  };
  const std::int64_t full_words = item.elements / kWordElements;
  for (std::int64_t word = 0; word < full_words; ++word) {
    cast_word(word, kWordElements, codes + word * kWordElements);
  }
  if (const int count = elements_in_word(item.elements, full_words); count > 0) {
    std::uint16_t padded[kWordElements];
    cast_word(full_words, count, padded);
    // An odd length is rounded up with a zero, so that the message is a multiple of 4 bytes.
    for (int i = 0; i < count + count % 2; ++i) {
      codes[full_words * kWordElements + i] = i < count ? padded[i] : 0;
    }
  }
}

template <class F, class Format>
HIPRESS_LANES void decode_cast_slice(const std::byte* const* messages, std::size_t count,
                                     const DecodeItem& item) {
  const auto reader = [messages](std::size_t i) __attribute__((always_inline)) {
    return CastReader<F, Format>{reinterpret_cast<const std::uint16_t*>(messages[i])};
  };
  if (item.mode == DecodeMode::kOverwrite) {
    overwrite<F>(reader(0), item.values, item.elements);
  } else {
    add_up<F>(reader, count, item.values, item.elements, {item.own_divisor, item.sum_divisor});
  }
}

template <class F>
HIPRESS_LANES void merge_slice(const float* const* others, std::size_t count, float* values,
                               std::int64_t elements, Divisors divisors) {
  const auto reader = [others](std::size_t i) __attribute__((always_inline)) {
    return RawReader<F>{others[i]};
  };
  add_up<F>(reader, count, values, elements, divisors);
}

}  // namespace hipress::kernels

// HIPRESS_DEFINE_HOST_LOOPS(Tag, F) defines HostLoops<Tag> with lanes F.

#define HIPRESS_DEFINE_CAST_(Format)                                                         \
  template <>                                                                                \
  template <>                                                                                \
  void HostLoops<LoopsTag>::encode_cast<Format>(const EncodeItem& item) {                    \
    encode_cast_slice<LoopsLanes, Format>(item);                                             \
  }                                                                                          \
  template <>                                                                                \
  template <>                                                                                \
  void HostLoops<LoopsTag>::decode_cast<Format>(const std::byte* const* messages,            \
                                                std::size_t count, const DecodeItem& item) { \
    decode_cast_slice<LoopsLanes, Format>(messages, count, item);                            \
  }

#define HIPRESS_DEFINE_HOST_LOOPS(Tag, F)                                                   \
  namespace hipress::kernels {                                                              \
  using LoopsTag = Tag;                                                                     \
  using LoopsLanes = F;                                                                     \
  HIPRESS_FOR_EACH_CAST(HIPRESS_DEFINE_CAST_)                                               \
  template <>                                                                               \
  void HostLoops<Tag>::decode(int planes, const PlaneSource* sources, std::size_t count,    \
                              const DecodeItem& item) {                                     \
    decode_slice<F>(planes, sources, count, item);                                          \
  }                                                                                         \
  template <>                                                                               \
  void HostLoops<Tag>::merge(const float* const* others, std::size_t count, float* values,  \
                             std::int64_t elements, float own_divisor, float sum_divisor) { \
    merge_slice<F>(others, count, values, elements, {own_divisor, sum_divisor});            \
  }                                                                                         \
  }
