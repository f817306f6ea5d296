#pragma once

#include <cstdint>

#include "kernels/draws.hpp"
#include "kernels/host_loops.hpp"
#include "kernels/quantizers.hpp"
#include "kernels/slice.hpp"

/// The bodies of the host loops, for float lanes F. Included by isa_*.cpp only, each compiled for
/// its own instruction set: whatever is not forced inline here must be a template on F, so that no
/// function compiled for one instruction set can stand in for another's.
namespace hipress::kernels {

/// A slice's results of this many elements are written past the caches.
inline constexpr std::int64_t kStreamElements = std::int64_t{1} << 20;

template <class F>
inline constexpr int kVectors = kWordElements / Lanes<F>::kWidth;

// ---- words: 32 elements, loaded and stored apart from the arithmetic ----

template <class F>
struct Word {
  F part[kVectors<F>];
};

/// The first `count` floats at `from`, then zeros.
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

/// Large results whose place is aligned to a vector go past the caches: nobody reads them soon.
template <class F>
HIPRESS_LANES bool should_stream(const float* values, std::int64_t elements) {
  return elements >= kStreamElements && reinterpret_cast<std::uintptr_t>(values) % sizeof(F) == 0;
}

template <class F>
HIPRESS_LANES void stream_word(float* to, const Word<F>& word) {
  for (int v = 0; v < kVectors<F>; ++v) stream(to + v * Lanes<F>::kWidth, word.part[v]);
}

// ---- statistics of a slice, in the order of reduction.hpp ----

/// Statistics of each lane of a word.
template <class Statistics, class F>
struct WordPartial {
  typename Statistics::template Partial<F> part[kVectors<F>];

  HIPRESS_LANES friend WordPartial combine(const WordPartial& a, const WordPartial& b) {
    WordPartial both;
    for (int v = 0; v < kVectors<F>; ++v) both.part[v] = combine(a.part[v], b.part[v]);
    return both;
  }
};

struct FirstLane {
  HIPRESS_LANES auto operator()(auto lanes) const { return lanes[0]; }
};
template <int kBy>
struct RotateLanes {
  HIPRESS_LANES auto operator()(auto lanes) const { return rotate_lanes<kBy>(lanes); }
};

/// Lanes l and l + kBy, then l + kBy / 2 …: the result is in lane 0.
template <class F, int kBy, class Partial>
HIPRESS_LANES auto combine_within(Partial partial) {
  if constexpr (Lanes<F>::kWidth == 1) {
    return partial;
  } else if constexpr (kBy == 0) {
    return partial.template each<float>(FirstLane());
  } else {
    return combine_within<F, kBy / 2>(
        combine(partial, partial.template each<F>(RotateLanes<kBy>())));
  }
}

template <class Statistics, class F>
HIPRESS_LANES auto combine_lanes(WordPartial<Statistics, F> word) {
  for (int half = kVectors<F> / 2; half > 0; half /= 2) {
    for (int v = 0; v < half; ++v) word.part[v] = combine(word.part[v], word.part[v + half]);
  }
  return combine_within<F, Lanes<F>::kWidth / 2>(word.part[0]);
}

/// The lanes of vector v of a word of which `count` elements belong to the slice.
template <class F>
HIPRESS_LANES MaskLanes<F> lanes_inside(int v, int count) {
  const int inside = count - v * Lanes<F>::kWidth;
  return less(lane_numbers<F>(),
              broadcast_bits<F>(static_cast<std::uint32_t>(inside > 0 ? inside : 0)));
}

/// The encoder of one slice with codes of kPlanes bits.
///
/// First pass: statistics, and the codes too if nothing remains to be done afterwards. Second pass,
/// if the codes need the header or there is a residual to update: codes and residual. The residual
/// must wait for the whole slice even where the codes need no header, since one NaN at the end
/// leaves all of it as it was.
template <class Algorithm, class F, int kPlanes, bool kResidual>
class SliceEncoder {
 public:
  HIPRESS_LANES SliceEncoder(const Algorithm& algorithm, const EncodeItem& item)
      : algorithm_(algorithm),
        item_(item),
        rule_(ValueRule::of(item)),
        draws_(draw_stream(item.key)),
        planes_(reinterpret_cast<std::uint32_t*>(item.message + sizeof(Header))) {}

  HIPRESS_LANES void run() const {
    Header header = measure();
    header.elements = static_cast<std::uint32_t>(item_.elements);
    header.algorithm = Algorithm::kTag;
    header.planes = kPlanes;
    __builtin_memcpy(item_.message, &header, sizeof header);
    if constexpr (kTwoPasses) {
      if (header.non_finite != 0) {
        __builtin_memset(planes_, 0, words_of(item_.elements) * kPlanes * sizeof(std::uint32_t));
      } else {
        encode(header);
      }
    }
  }

 private:
  using Statistics = typename Algorithm::Statistics;
  using Coder = typename Algorithm::Coder;
  using U = UnsignedLanes<F>;
  template <class G>
  using Partial = typename Statistics::template Partial<G>;
  static constexpr bool kTwoPasses = kResidual || Algorithm::kCodesNeedHeader;
  static constexpr int kWidth = Lanes<F>::kWidth;

  /// First pass over `rows` of one tile; kFull promises that the slice has all of the tile.
  template <bool kFull>
  struct MeasureRow {
    const SliceEncoder& encoder;
    const Coder coder;
    std::int64_t first_word;
    U flags = {};  ///< non_finite_flag of the inputs

    HIPRESS_LANES WordPartial<Statistics, F> operator()(int row) {
      const std::int64_t word = first_word + row;
      const int count = kFull ? kWordElements : elements_in_word(encoder.item_.elements, word);
      WordPartial<Statistics, F> statistics;
      if (count == 0) {
        for (auto& part : statistics.part) part = Partial<F>::identity();
        return statistics;
      }
      const Word<F> inputs = load_word<F>(encoder.item_.values + word * kWordElements, count);
      const Word<F> residuals = encoder.load_residual<Statistics::kReadsValues>(word, count);
      std::uint32_t planes[kPlanes] = {};
      for (int v = 0; v < kVectors<F>; ++v) {
        flags = flags | non_finite_flag(inputs.part[v]);
        const F value = encoder.rule_(inputs.part[v], residuals.part[v]);
        statistics.part[v] = Partial<F>::of(value);
        if (!kFull) statistics.part[v] = statistics.part[v].restricted(lanes_inside<F>(v, count));
        if constexpr (!kTwoPasses) {
          MaskLanes<F> codes[kPlanes];
          coder.code(value, word * kWordElements + v * kWidth, codes);
          for (int p = 0; p < kPlanes; ++p) planes[p] |= bits_of_mask(codes[p]) << (v * kWidth);
        }
      }
      if constexpr (!kTwoPasses) encoder.store_planes(word, planes, count);
      return statistics;
    }
  };

  /// Statistics of one tile; adds to `flags`.
  template <bool kFull>
  HIPRESS_LANES Partial<double> measure_tile(std::int64_t tile, const Coder& coder,
                                             U& flags) const {
    MeasureRow<kFull> row{*this, coder, tile * kTileWords, flags};
    const Partial<float> sums = combine_lanes<Statistics, F>(combine_tile(row));
    flags = row.flags;
    if (sums.overflowed()) return measure_tile_in_double(*this, tile);
    return sums.template each<double>(Widen());
  }

  /// The same tree in double precision, where the sums of a tile of finite floats cannot overflow.
  /// Takes a copy of the encoder, whose members can then stay in registers elsewhere.
  __attribute__((noinline)) static Partial<double> measure_tile_in_double(SliceEncoder encoder,
                                                                          std::int64_t tile) {
    using Lane = WordPartial<Statistics, double>;
    Lane rows[kTileWords];
    for (int row = 0; row < kTileWords; ++row) {
      const std::int64_t word = tile * kTileWords + row;
      const int count = elements_in_word(encoder.item_.elements, word);
      for (int lane = 0; lane < kWordElements; ++lane) {
        rows[row].part[lane] = lane < count
                                   ? Partial<double>::of(encoder.value(word * kWordElements + lane))
                                   : Partial<double>::identity();
      }
    }
    combine_neighbours(rows, kTileWords);
    return combine_lanes<Statistics, double>(rows[0]);
  }

  /// One element's v.
  HIPRESS_LANES float value(std::int64_t element) const {
    return rule_(item_.values[element], kResidual ? item_.state.data[element] : 0.0f);
  }

  /// The whole first pass.
  HIPRESS_LANES Header measure() const {
    const Coder coder = algorithm_.coder(Header(), draws_);
    const std::int64_t full_tiles = item_.elements / kTileElements;
    const std::int64_t tiles = (item_.elements + kTileElements - 1) / kTileElements;
    Partial<double> slice = Partial<double>::identity();
    U flags = {};
    for (std::int64_t block = 0; block * kBlockTiles < tiles; ++block) {
      Partial<double> sums[kBlockTiles];
      for (int i = 0; i < kBlockTiles; ++i) {
        const std::int64_t tile = block * kBlockTiles + i;
        sums[i] = tile < full_tiles ? measure_tile<true>(tile, coder, flags)
                  : tile < tiles    ? measure_tile<false>(tile, coder, flags)
                                    : Partial<double>::identity();
      }
      combine_neighbours(sums, kBlockTiles);
      slice = combine(slice, sums[0]);
    }
    Header header;
    if (bits_of_mask(has_bit(flags, 0x80000000u)) != 0) {
      header.non_finite = 1;
    } else {
      header = algorithm_.header(slice, item_.elements);
    }
    return header;
  }

  /// The whole second pass.
  HIPRESS_LANES void encode(const Header& header) const {
    const Coder coder = algorithm_.coder(header, draws_);
    float levels[1 << kPlanes] = {};
    if constexpr (kResidual) {
      for (int code = 0; code < 1 << kPlanes; ++code) levels[code] = algorithm_.level(header, code);
    }
    const std::int64_t full_words = item_.elements / kWordElements;
    for (std::int64_t word = 0; word < full_words; ++word) {
      encode_word(word, kWordElements, coder, levels);
    }
    if (full_words < words_of(item_.elements)) {
      encode_word(full_words, elements_in_word(item_.elements, full_words), coder, levels);
    }
  }

  HIPRESS_LANES void encode_word(std::int64_t word, int count, const Coder& coder,
                                 const float* levels) const {
    const Word<F> inputs = load_word<F>(item_.values + word * kWordElements, count);
    Word<F> residuals = load_residual<true>(word, count);
    std::uint32_t planes[kPlanes] = {};
    for (int v = 0; v < kVectors<F>; ++v) {
      const F value = rule_(inputs.part[v], residuals.part[v]);
      MaskLanes<F> codes[kPlanes];
      coder.code(value, word * kWordElements + v * kWidth, codes);
      for (int p = 0; p < kPlanes; ++p) planes[p] |= bits_of_mask(codes[p]) << (v * kWidth);
      if constexpr (kResidual) {
        residuals.part[v] = value - level_of<kPlanes, F>(codes, levels);
      }
    }
    store_planes(word, planes, count);
    if constexpr (kResidual) {
      store_word(item_.state.data + word * kWordElements, residuals, count);
    }
  }

  template <bool kNeeded>
  HIPRESS_LANES Word<F> load_residual(std::int64_t word, int count) const {
    if constexpr (kResidual && kNeeded) {
      return load_word<F>(item_.state.data + word * kWordElements, count);
    } else {
      return {};
    }
  }

  HIPRESS_LANES void store_planes(std::int64_t word, const std::uint32_t (&planes)[kPlanes],
                                  int count) const {
    for (int p = 0; p < kPlanes; ++p) {
      planes_[word * kPlanes + p] = planes[p] & first_bits(count);
    }
  }

  const Algorithm algorithm_;
  const EncodeItem item_;
  const ValueRule rule_;
  const DrawStream draws_;
  std::uint32_t* const planes_;
};

template <class Algorithm, class F, int kPlanes, bool kResidual>
__attribute__((noinline)) void run_encoder(const Algorithm& algorithm, const EncodeItem& item) {
  SliceEncoder<Algorithm, F, kPlanes, kResidual>(algorithm, item).run();
}

template <class Algorithm, class F, int kPlanes = Algorithm::kLeastPlanes>
HIPRESS_LANES void encode_slice(const Algorithm& algorithm, const EncodeItem& item) {
  if constexpr (kPlanes < Algorithm::kMostPlanes) {
    if (algorithm.planes() > kPlanes) {
      return encode_slice<Algorithm, F, kPlanes + 1>(algorithm, item);
    }
  }
  if constexpr (Algorithm::kErrorFeedback) {
    if (item.state.data != nullptr) {
      return run_encoder<Algorithm, F, kPlanes, true>(algorithm, item);
    }
  }
  run_encoder<Algorithm, F, kPlanes, false>(algorithm, item);
}

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

// HIPRESS_DEFINE_HOST_LOOPS(Tag, F) defines HostLoops<Tag> with lanes F, for every algorithm there
// is.

#define HIPRESS_DEFINE_QUANTIZER_(Algorithm)                                             \
  template <>                                                                            \
  template <>                                                                            \
  void HostLoops<LoopsTag>::encode(const Algorithm& algorithm, const EncodeItem& item) { \
    encode_slice<Algorithm, LoopsLanes>(algorithm, item);                                \
  }

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
  HIPRESS_FOR_EACH_QUANTIZER(HIPRESS_DEFINE_QUANTIZER_)                                     \
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
