#pragma once

#include <cstdint>
#include <utility>

#include "kernels/codec/codec.hpp"
#include "kernels/codec/slice.hpp"
#include "kernels/frames/bound_functions.hpp"
#include "kernels/frames/compiled_algorithm.hpp"
#include "kernels/frames/quantizer.hpp"
#include "kernels/frames/typed_values.hpp"
#include "kernels/frames/words.hpp"

/// Frame of quantisers on a CPU: the loops around an algorithm's arithmetic, for float lanes F
/// (codec/lanes.hpp). Only files of a single algorithm include this header; each is compiled for
/// one instruction set. Every function that is not forced inline must be a template on Algorithm
/// and F, so that the linker cannot replace it by one compiled for a different instruction set.
namespace hipress::kernels {

// ---- reductions over a slice, in the order of frames/reduction.hpp ----

/// Partials of each lane of a word.
template <class Partial, class F>
struct WordPartials {
  Partial part[kVectors<F>];

  HIPRESS_LANES friend WordPartials combine(const WordPartials& a, const WordPartials& b) {
    WordPartials both;
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

/// Combines lanes l and l + kBy, then l + kBy / 2 …; the result is in lane 0.
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

template <class F, class Partial>
HIPRESS_LANES auto combine_lanes(WordPartials<Partial, F> word) {
  for (int half = kVectors<F> / 2; half > 0; half /= 2) {
    for (int v = 0; v < half; ++v) word.part[v] = combine(word.part[v], word.part[v + half]);
  }
  return combine_within<F, Lanes<F>::kWidth / 2>(word.part[0]);
}

/// Mask of the lanes of vector v in a word of which `count` elements belong to the slice.
template <class F>
HIPRESS_LANES MaskLanes<F> lanes_inside(int v, int count) {
  const int inside = count - v * Lanes<F>::kWidth;
  return less(lane_numbers<F>(),
              broadcast_bits<F>(static_cast<std::uint32_t>(inside > 0 ? inside : 0)));
}

/// Treatment of the residual by an encode.
enum class Feedback {
  kNone,
  kAtOnce,    ///< updates it; needs the levels, and an earlier pass that found no NaN
  kDeferred,  ///< stores v in its place, from which the next encode subtracts the levels
};

/// Encoder of one slice with codes of kPlanes bits.
///
/// Measuring passes come first. The codes are made in the first pass in which all their inputs are
/// known, or in a last pass of their own. A residual updated at once always needs that last pass,
/// because one NaN at the end of the slice must leave the whole residual unchanged.
template <class Algorithm, class F, int kPlanes, Feedback kFeedback>
class SliceEncoder {
 public:
  HIPRESS_LANES SliceEncoder(const Algorithm& algorithm, const EncodeItem& item)
      : algorithm_(algorithm),
        item_(item),
        rule_(ValueRule::of(item)),
        draws_(draw_stream(item.key, item.elements)),
        planes_(reinterpret_cast<std::uint32_t*>(item.message + kPlanesOffset<Algorithm>)) {
    if constexpr (kFeedback == Feedback::kDeferred) {
      if (item_.state.deferred->owed) {
        typename Algorithm::Wire wire;
        __builtin_memcpy(&wire, item_.state.deferred->wire, sizeof wire);
        fill_levels<kPlanes>(algorithm_.levels(wire, item_.elements), owed_);
      }
    }
  }

  HIPRESS_LANES void run() {
    Scalars scalars = algorithm_.begin(item_.elements);
    MessageStart<Algorithm> start = {};
    start.header.elements = static_cast<std::uint32_t>(item_.elements);
    start.header.tag = Algorithm::kTag;
    start.header.planes = kPlanes;
    bool finite = measure_all<0>(scalars);
    if (finite) {
      start.wire = algorithm_.wire(scalars);
      finite = can_be_sent(algorithm_, start.wire, item_.elements);
    }
    if (finite) {
      if constexpr (!kCodesInMeasuring) encode(scalars, start.wire);
    } else {
      start.header.non_finite = 1;
      start.wire = {};
      __builtin_memset(planes_, 0, words_of(item_.elements) * kPlanes * sizeof(std::uint32_t));
      if constexpr (kFeedback == Feedback::kDeferred) put_back();
    }
    if constexpr (kFeedback == Feedback::kDeferred) {
      Deferred& deferred = *item_.state.deferred;
      deferred.owed = start.header.non_finite == 0;
      __builtin_memcpy(deferred.wire, &start.wire, sizeof start.wire);
    }
    __builtin_memset(item_.message, 0, kPlanesOffset<Algorithm>);
    __builtin_memcpy(item_.message, &start.header, sizeof start.header);
    __builtin_memcpy(item_.message + sizeof start.header, &start.wire, sizeof start.wire);
  }

 private:
  using Scalars = typename Algorithm::Scalars;
  using Wire = typename Algorithm::Wire;
  using U = UnsignedLanes<F>;
  static constexpr bool kResidual = kFeedback != Feedback::kNone;
  static constexpr bool kCodesInMeasuring =
      kFeedback != Feedback::kAtOnce && Algorithm::kCodesAfter < Algorithm::kPasses;
  static constexpr int kWidth = Lanes<F>::kWidth;
  template <int kPass>
  using Measure = decltype(std::declval<const Algorithm&>().measure(
      Pass<kPass>(), std::declval<const Scalars&>(), std::declval<const DrawStream&>()));
  template <int kPass, class G>
  using Partial = typename Measure<kPass>::template Partial<G>;
  using Coder = decltype(std::declval<const Algorithm&>().coder(std::declval<const Scalars&>(),
                                                                std::declval<const DrawStream&>()));

  /// Runs measuring pass kPass and all later ones. Returns false if pass 0 finds a non-finite
  /// input.
  template <int kPass>
  HIPRESS_LANES bool measure_all(Scalars& scalars) {
    if constexpr (kPass < Algorithm::kPasses) {
      U flags = {};
      const Partial<kPass, double> found = measure_slice<kPass>(scalars, flags);
      if (kPass == 0 && bits_of_mask(has_bit(flags, 0x80000000u)) != 0) return false;
      algorithm_.conclude(Pass<kPass>(), found, scalars);
      return measure_all<kPass + 1>(scalars);
    } else {
      return true;
    }
  }

  /// Measuring pass kPass over the words of one tile. kFull: the whole tile is inside the slice.
  template <int kPass, bool kFull>
  struct MeasureRow {
    const SliceEncoder& encoder;
    const Measure<kPass> measure;
    const Coder coder;
    std::int64_t first_word;
    const float* const inputs;  ///< the tile's inputs
    U flags = {};               ///< non_finite_flag of the inputs

    static constexpr bool kCodes = kCodesInMeasuring && kPass == Algorithm::kCodesAfter;

    HIPRESS_LANES WordPartials<Partial<kPass, F>, F> operator()(int row) {
      const std::int64_t word = first_word + row;
      const int count = kFull ? kWordElements : elements_in_word(encoder.item_.elements, word);
      WordPartials<Partial<kPass, F>, F> partials;
      if (count == 0) {
        for (auto& part : partials.part) part = Partial<kPass, F>::identity();
        return partials;
      }
      if constexpr (!kResidual) prefetch_word(inputs + row * kWordElements);
      const Word<F> input = load_word<F>(inputs + row * kWordElements, count);
      Word<F> residuals = encoder.load_residual(word, count);
      std::uint32_t planes[kPlanes] = {};
      for (int v = 0; v < kVectors<F>; ++v) {
        const std::int64_t element = word * kWordElements + v * kWidth;
        const U flag = non_finite_flag(input.part[v]);
        if constexpr (kPass == 0) flags = flags | flag;
        const F residual = encoder.owed_residual(residuals.part[v], element);
        const F value = encoder.rule_(input.part[v], residual);
        partials.part[v] = measure.template of<F>(value, element);
        if (!kFull) partials.part[v] = partials.part[v].restricted(lanes_inside<F>(v, count));
        if constexpr (kCodes) {
          MaskLanes<F> codes[kPlanes];
          coder.template code<kPlanes, F>(value, element, codes);
          for (int p = 0; p < kPlanes; ++p) planes[p] |= bits_of_mask(codes[p]) << (v * kWidth);
        }
        if constexpr (kFeedback == Feedback::kDeferred) {
          residuals.part[v] = select(has_bit(flag, 0x80000000u), residual, value);
        }
      }
      if constexpr (kCodes) encoder.store_planes(word, planes, count);
      if constexpr (kFeedback == Feedback::kDeferred) {
        store_word(encoder.item_.state.data + word * kWordElements, residuals, count);
      }
      return partials;
    }
  };

  /// Partials of one tile; adds to `flags`. `room` holds a tile in fp32.
  template <int kPass, bool kFull>
  HIPRESS_LANES Partial<kPass, double> measure_tile(std::int64_t tile, const Scalars& scalars,
                                                    U& flags, float* room) const {
    const std::int64_t first = tile * kTileElements;
    const std::int64_t count = kFull ? kTileElements : item_.elements - first;
    MeasureRow<kPass, kFull> row{*this,
                                 algorithm_.measure(Pass<kPass>(), scalars, draws_),
                                 algorithm_.coder(scalars, draws_),
                                 tile * kTileWords,
                                 in_fp32<F>(item_.values, item_.type, first, count, room),
                                 flags};
    const Partial<kPass, float> found = combine_lanes<F>(combine_tile(row));
    flags = row.flags;
    if (found.overflowed()) return measure_tile_in_double<kPass>(*this, tile, scalars);
    return found.template each<double>(Widen());
  }

  /// measure_tile() in double precision, which cannot overflow for a tile of finite floats. Takes a
  /// copy of the encoder, so that the original's members can stay in registers.
  template <int kPass>
  __attribute__((noinline)) static Partial<kPass, double> measure_tile_in_double(
      SliceEncoder encoder, std::int64_t tile, Scalars scalars) {
    using Lane = Partial<kPass, double>;
    const auto measure = encoder.algorithm_.measure(Pass<kPass>(), scalars, encoder.draws_);
    WordPartials<Lane, double> rows[kTileWords];
    for (int row = 0; row < kTileWords; ++row) {
      const std::int64_t word = tile * kTileWords + row;
      const int count = elements_in_word(encoder.item_.elements, word);
      for (int lane = 0; lane < kWordElements; ++lane) {
        const std::int64_t element = word * kWordElements + lane;
        rows[row].part[lane] = Lane::identity();
        if (lane < count) {
          rows[row].part[lane] = measure.template of<float>(encoder.value_now(element), element)
                                     .template each<double>(Widen());
        }
      }
    }
    combine_neighbours(rows, kTileWords);
    return combine_lanes<double>(rows[0]);
  }

  /// Value v of an element that a measuring pass has reached. Deferred feedback has stored v by
  /// then.
  HIPRESS_LANES float value_now(std::int64_t element) const {
    if constexpr (kFeedback == Feedback::kDeferred) return item_.state.data[element];
    return rule_(load_value(item_.values, item_.type, element),
                 kResidual ? item_.state.data[element] : 0.0f);
  }

  /// Runs measuring pass kPass over the slice.
  template <int kPass>
  HIPRESS_LANES Partial<kPass, double> measure_slice(const Scalars& scalars, U& flags) const {
    const std::int64_t full_tiles = item_.elements / kTileElements;
    const std::int64_t tiles = (item_.elements + kTileElements - 1) / kTileElements;
    Partial<kPass, double> slice = Partial<kPass, double>::identity();
    alignas(64) float room[kTileElements];
    for (std::int64_t block = 0; block * kBlockTiles < tiles; ++block) {
      Partial<kPass, double> sums[kBlockTiles];
      for (int i = 0; i < kBlockTiles; ++i) {
        const std::int64_t tile = block * kBlockTiles + i;
        sums[i] = tile < full_tiles ? measure_tile<kPass, true>(tile, scalars, flags, room)
                  : tile < tiles    ? measure_tile<kPass, false>(tile, scalars, flags, room)
                                    : Partial<kPass, double>::identity();
      }
      combine_neighbours(sums, kBlockTiles);
      slice = combine(slice, sums[0]);
    }
    return slice;
  }

  /// The last pass: makes the codes, and the residual with Feedback::kAtOnce.
  HIPRESS_LANES void encode(const Scalars& scalars, const Wire& wire) const {
    const Coder coder = algorithm_.coder(scalars, draws_);
    float levels[1 << kPlanes] = {};
    if constexpr (kResidual) fill_levels<kPlanes>(algorithm_.levels(wire, item_.elements), levels);
    const auto encode_words = [&](const float* values, std::int64_t first, std::int64_t count)
        __attribute__((always_inline)) {
      const std::int64_t first_word = first / kWordElements;
      const std::int64_t full_words = count / kWordElements;
      for (std::int64_t word = 0; word < full_words; ++word) {
        prefetch_word(values + word * kWordElements);
        encode_word(values + word * kWordElements, first_word + word, kWordElements, coder, levels);
      }
      if (const int rest = elements_in_word(count, full_words); rest > 0) {
        encode_word(values + full_words * kWordElements, first_word + full_words, rest, coder,
                    levels);
      }
    };
    read_in_fp32<F>(item_.values, item_.type, item_.elements, encode_words);
  }

  /// Encodes word `word` of the slice, whose inputs are at `values`.
  HIPRESS_LANES void encode_word(const float* values, std::int64_t word, int count,
                                 const Coder& coder, const float* levels) const {
    const Word<F> inputs = load_word<F>(values, count);
    Word<F> residuals = load_residual(word, count);
    std::uint32_t planes[kPlanes] = {};
    for (int v = 0; v < kVectors<F>; ++v) {
      const F value = rule_(inputs.part[v], residuals.part[v]);
      MaskLanes<F> codes[kPlanes];
      coder.template code<kPlanes, F>(value, word * kWordElements + v * kWidth, codes);
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

  HIPRESS_LANES Word<F> load_residual(std::int64_t word, int count) const {
    if constexpr (kResidual) {
      return load_word<F>(item_.state.data + word * kWordElements, count);
    } else {
      return {};
    }
  }

  /// The residual: the state, minus the level of the last message if that is still to be
  /// subtracted.
  HIPRESS_LANES F owed_residual(F state, std::int64_t element) const {
    if constexpr (kFeedback == Feedback::kDeferred) {
      MaskLanes<F> codes[kPlanes];
      algorithm_.coder(Scalars(), DrawStream()).template code<kPlanes, F>(state, element, codes);
      return state - level_of<kPlanes, F>(codes, owed_);
    } else {
      return state;
    }
  }

  /// Restores the residual after a pass that met a NaN or infinity and stored v.
  HIPRESS_LANES void put_back() const {
    read_in_fp32<F>(
        item_.values, item_.type, item_.elements,
        [&](const float* values, std::int64_t first, std::int64_t count)
            __attribute__((always_inline)) {
              for (std::int64_t word = 0; word < words_of(count); ++word) {
                put_back_word(values + word * kWordElements, first / kWordElements + word,
                              elements_in_word(count, word));
              }
            });
  }

  HIPRESS_LANES void put_back_word(const float* values, std::int64_t word, int count) const {
    const Word<F> inputs = load_word<F>(values, count);
    Word<F> residuals = load_residual(word, count);
    for (int v = 0; v < kVectors<F>; ++v) {
      const F taken = residuals.part[v] - rule_(inputs.part[v], F{});
      residuals.part[v] =
          select(has_bit(non_finite_flag(inputs.part[v]), 0x80000000u), residuals.part[v], taken);
    }
    store_word(item_.state.data + word * kWordElements, residuals, count);
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
  /// Levels of the message that is still to be subtracted from the state.
  float owed_[1 << kPlanes] = {};
};

template <class Algorithm, class F, int kPlanes, Feedback kFeedback>
__attribute__((noinline)) void run_encoder(const Algorithm& algorithm, const EncodeItem& item) {
  SliceEncoder<Algorithm, F, kPlanes, kFeedback>(algorithm, item).run();
}

template <class Algorithm, class F, int kPlanes = Algorithm::kMinPlanes>
HIPRESS_LANES void encode_slice(const Algorithm& algorithm, const EncodeItem& item) {
  if constexpr (kPlanes < Algorithm::kMaxPlanes) {
    if (algorithm.planes() > kPlanes) {
      return encode_slice<Algorithm, F, kPlanes + 1>(algorithm, item);
    }
  }
  if constexpr (Algorithm::kErrorFeedback) {
    if constexpr (kDeferrable<Algorithm>) {
      if (item.state.data != nullptr && item.state.deferred != nullptr) {
        return run_encoder<Algorithm, F, kPlanes, Feedback::kDeferred>(algorithm, item);
      }
    }
    if (item.state.data != nullptr) {
      return run_encoder<Algorithm, F, kPlanes, Feedback::kAtOnce>(algorithm, item);
    }
  }
  run_encoder<Algorithm, F, kPlanes, Feedback::kNone>(algorithm, item);
}

/// Codec::settle() for one slice.
template <class Algorithm, class F, int kPlanes = Algorithm::kMinPlanes>
HIPRESS_LANES void settle_slice(const Algorithm& algorithm, const State& state,
                                std::int64_t elements) {
  if constexpr (kDeferrable<Algorithm>) {
    if constexpr (kPlanes < Algorithm::kMaxPlanes) {
      if (algorithm.planes() > kPlanes) {
        return settle_slice<Algorithm, F, kPlanes + 1>(algorithm, state, elements);
      }
    }
    typename Algorithm::Wire wire;
    __builtin_memcpy(&wire, state.deferred->wire, sizeof wire);
    float levels[1 << kPlanes];
    fill_levels<kPlanes>(algorithm.levels(wire, elements), levels);
    const auto coder = algorithm.coder(typename Algorithm::Scalars(), DrawStream());
    for (std::int64_t word = 0; word < words_of(elements); ++word) {
      const int count = elements_in_word(elements, word);
      Word<F> residuals = load_word<F>(state.data + word * kWordElements, count);
      for (int v = 0; v < kVectors<F>; ++v) {
        MaskLanes<F> codes[kPlanes];
        coder.template code<kPlanes, F>(residuals.part[v], word * kWordElements, codes);
        residuals.part[v] = residuals.part[v] - level_of<kPlanes, F>(codes, levels);
      }
      store_word(state.data + word * kWordElements, residuals, count);
    }
  }
}

/// Functions of a quantiser's CompiledAlgorithm, with lanes F.
template <class Algorithm, class F>
struct HostQuantizerFunctions : BoundFunctions<Algorithm, F> {
  using BoundFunctions<Algorithm, F>::algorithm;

  static int planes(const BoundAlgorithm& bound) { return algorithm(bound).planes(); }
  static std::int64_t encoded_bytes(const BoundAlgorithm& bound, std::int64_t elements) {
    return quantizer_message_bytes(elements, algorithm(bound).planes(), kPlanesOffset<Algorithm>);
  }
  static void encode(const BoundAlgorithm& bound, const EncodeItem& item) {
    if (item.message_bytes != nullptr) *item.message_bytes = encoded_bytes(bound, item.elements);
    encode_slice<Algorithm, F>(algorithm(bound), item);
  }
  static bool levels(const BoundAlgorithm& bound, const std::byte* message, std::int64_t elements,
                     float* levels) {
    MessageStart<Algorithm> start;
    __builtin_memcpy(&start.header, message, sizeof start.header);
    __builtin_memcpy(&start.wire, message + sizeof start.header, sizeof start.wire);
    if (!fits(start, algorithm(bound), elements)) return false;
    const auto level = algorithm(bound).levels(start.wire, elements);
    for (int code = 0; code < 1 << algorithm(bound).planes(); ++code) {
      levels[code] = start.header.non_finite == 0 ? level(code) : not_a_number();
    }
    return true;
  }
  static void settle(const BoundAlgorithm& bound, const State& state, std::int64_t elements) {
    settle_slice<Algorithm, F>(algorithm(bound), state, elements);
  }
};

template <class Algorithm, class F>
constexpr CompiledAlgorithm host_quantizer(const char* name, const DeclaredParameter* parameters,
                                           int count) {
  using Functions = HostQuantizerFunctions<Algorithm, F>;
  return {.name = name,
          .parameters = parameters,
          .parameter_count = count,
          .error_feedback = Algorithm::kErrorFeedback,
          .state_arrays = Algorithm::kErrorFeedback ? 1 : 0,
          .deferrable = Algorithm::kErrorFeedback && kDeferrable<Algorithm>,
          .bind = Functions::bind,
          .encoded_bytes = Functions::encoded_bytes,
          .encode = Functions::encode,
          .decode = nullptr,
          .settle = Functions::settle,
          .planes_offset = kPlanesOffset<Algorithm>,
          .planes = Functions::planes,
          .levels = Functions::levels,
          .cuda = cuda_shape<Algorithm>()};
}

}  // namespace hipress::kernels
