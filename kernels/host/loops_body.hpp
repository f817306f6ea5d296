#pragma once

#include <cstdint>

#include "kernels/codec/slice.hpp"
#include "kernels/frames/casts.hpp"
#include "kernels/frames/typed_values.hpp"
#include "kernels/frames/words.hpp"
#include "kernels/host/loops.hpp"

/// Bodies of the host loops that serve every algorithm, for float lanes F (codec/lanes.hpp). Only
/// isa_*.cpp include this header; each is compiled for one instruction set. Every function that is
/// not forced inline must be a template on F, so that the linker cannot replace it by one compiled
/// for a different instruction set.
namespace hipress::kernels {

// ---- decoding, merging and casting ----

/// Divides the lanes: x = x / divisor, unless the divisor is 1.
template <class F>
HIPRESS_LANES void divide(Word<F>& word, const Divisor& divisor) {
  if (!divisor.divides) return;
  for (F& part : word.part) part = divisor(part);
}

/// Decodes the words of a message of bit planes.
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

/// Decodes the words of a cast message.
template <class F, class Format>
struct CastReader {
  const std::uint16_t* codes;

  HIPRESS_LANES Word<F> operator()(std::int64_t word, int count) const {
    return load_codes<Format, F>(codes + word * kWordElements, count);
  }
};

/// Reads the words of an fp32 array.
template <class F>
struct RawReader {
  const float* values;

  HIPRESS_LANES Word<F> operator()(std::int64_t word, int count) const {
    return load_word<F>(values + word * kWordElements, count);
  }
};

/// Decodes a slice's elements, starting at word `first_word`: x = d, written to `values`.
template <class F, class Reader>
HIPRESS_LANES void overwrite(const Reader& reader, std::int64_t first_word, float* values,
                             std::int64_t elements) {
  const std::int64_t full_words = elements / kWordElements;
  if (should_stream<F>(values, elements)) {
    for (std::int64_t word = 0; word < full_words; ++word) {
      stream_word(values + word * kWordElements, reader(first_word + word, kWordElements));
    }
    finish_streaming();
  } else {
    for (std::int64_t word = 0; word < full_words; ++word) {
      store_word(values + word * kWordElements, reader(first_word + word, kWordElements),
                 kWordElements);
    }
  }
  if (const int count = elements_in_word(elements, full_words); count > 0) {
    store_word(values + full_words * kWordElements, reader(first_word + full_words, count), count);
  }
}

/// The divisors of x = (x / own + d1 + d2 + …) / sum.
struct Divisors {
  Divisor own;
  Divisor sum;
};

/// Adds word `word` of d1, d2 …, read by readers(0), readers(1) …, to x at `values`, between the
/// divisions.
template <class F, class Readers>
HIPRESS_LANES void add_up_word(const Readers& readers, std::size_t count_of_readers,
                               std::int64_t word, int count, float* values,
                               const Divisors& divisors) {
  Word<F> sum = load_word<F>(values, count);
  divide(sum, divisors.own);
  for (std::size_t i = 0; i < count_of_readers; ++i) {
    const Word<F> term = readers(i)(word, count);
    for (int v = 0; v < kVectors<F>; ++v) sum.part[v] = sum.part[v] + term.part[v];
  }
  divide(sum, divisors.sum);
  store_word(values, sum, count);
}

/// Adds all words of d1, d2 … likewise, starting at word `first_word`, to x at `values`.
template <class F, class Readers>
HIPRESS_LANES void add_up(const Readers& readers, std::size_t count_of_readers,
                          std::int64_t first_word, float* values, std::int64_t elements,
                          const Divisors& divisors) {
  const std::int64_t full_words = elements / kWordElements;
  for (std::int64_t word = 0; word < full_words; ++word) {
    add_up_word<F>(readers, count_of_readers, first_word + word, kWordElements,
                   values + word * kWordElements, divisors);
  }
  if (const int count = elements_in_word(elements, full_words); count > 0) {
    add_up_word<F>(readers, count_of_readers, first_word + full_words, count,
                   values + full_words * kWordElements, divisors);
  }
}

/// Decodes an item's messages, which readers(0), readers(1) … read, and overwrites or adds.
template <class F, class Readers>
HIPRESS_LANES void decode_with(const Readers& readers, std::size_t count, const DecodeItem& item) {
  const Divisors divisors{Divisor::of(item.own_divisor), Divisor::of(item.sum_divisor)};
  if (item.mode == DecodeMode::kOverwrite) {
    write_in_fp32<F>(
        item.values, item.type, item.elements, Before::kUnknown,
        [&](float* values, std::int64_t first, std::int64_t elements) __attribute__((
            always_inline)) { overwrite<F>(readers(0), first / kWordElements, values, elements); });
  } else {
    write_in_fp32<F>(
        item.values, item.type, item.elements, Before::kThere,
        [&](float* values, std::int64_t first, std::int64_t elements)
            __attribute__((always_inline)) {
              add_up<F>(readers, count, first / kWordElements, values, elements, divisors);
            });
  }
}

template <class F, int kPlanes = 1>
HIPRESS_LANES void decode_slice(int planes, const PlaneSource* sources, std::size_t count,
                                const DecodeItem& item) {
  if constexpr (kPlanes < kMaxPlanes) {
    if (planes > kPlanes) return decode_slice<F, kPlanes + 1>(planes, sources, count, item);
  }
  const auto reader = [sources](std::size_t i) __attribute__((always_inline)) {
    return PlaneReader<F, kPlanes>{sources[i].planes, sources[i].levels};
  };
  decode_with<F>(reader, count, item);
}

template <class F, class Format>
HIPRESS_LANES void encode_cast_slice(const EncodeItem& item) {
  auto* codes = reinterpret_cast<std::uint16_t*>(item.message);
  const Divisor divisor = Divisor::of(item.divisor);
  const auto cast_word = [&](const float* values, std::int64_t word, int count)
      __attribute__((always_inline)) {
    Word<F> inputs = load_word<F>(values, count);
    divide(inputs, divisor);
    store_codes<Format>(codes + word * kWordElements, inputs, count);
  };
  read_in_fp32<F>(
      item.values, item.type, item.elements,
      [&](const float* values, std::int64_t first,
          std::int64_t count) __attribute__((always_inline)) {
        const std::int64_t first_word = first / kWordElements, full_words = count / kWordElements;
        for (std::int64_t word = 0; word < full_words; ++word) {
          cast_word(values + word * kWordElements, first_word + word, kWordElements);
        }
        if (const int rest = elements_in_word(count, full_words); rest > 0) {
          cast_word(values + full_words * kWordElements, first_word + full_words, rest);
        }
      });
  // Pad an odd length with a zero, so that the message is a multiple of 4 bytes.
  if (item.elements % 2 != 0) codes[item.elements] = 0;
}

template <class F, class Format>
HIPRESS_LANES void decode_cast_slice(const std::byte* const* messages, std::size_t count,
                                     const DecodeItem& item) {
  const auto reader = [messages](std::size_t i) __attribute__((always_inline)) {
    return CastReader<F, Format>{reinterpret_cast<const std::uint16_t*>(messages[i])};
  };
  decode_with<F>(reader, count, item);
}

template <class F>
HIPRESS_LANES void merge_slice(const float* const* others, std::size_t count, float* values,
                               std::int64_t elements, const Divisors& divisors) {
  const auto reader = [others](std::size_t i) __attribute__((always_inline)) {
    return RawReader<F>{others[i]};
  };
  add_up<F>(reader, count, 0, values, elements, divisors);
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
    merge_slice<F>(others, count, values, elements,                                         \
                   {Divisor::of(own_divisor), Divisor::of(sum_divisor)});                   \
  }                                                                                         \
  }
