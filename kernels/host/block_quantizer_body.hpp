#pragma once

#include <cstdint>
#include <utility>

#include "kernels/codec/codec.hpp"
#include "kernels/codec/slice.hpp"
#include "kernels/frames/block_quantizer.hpp"
#include "kernels/frames/bound_functions.hpp"
#include "kernels/frames/compiled_algorithm.hpp"
#include "kernels/frames/typed_values.hpp"
#include "kernels/frames/words.hpp"
#include "kernels/host/bytes.hpp"
#include "kernels/host/quantizer_body.hpp"
#include "kernels/host/rotation.hpp"

/// Frame of block quantisers on a CPU: the loops around an algorithm's arithmetic, for float lanes
/// F (codec/lanes.hpp). Only files of a single algorithm include this header; each is compiled for
/// one instruction set. Every function that is not forced inline must be a template on Algorithm
/// and F, so that the linker cannot replace it by one compiled for a different instruction set.
///
/// A block fits the L1 cache, so it is read from memory once, for measuring, and coded from the
/// cache. Error feedback takes a second pass over the slice, because one NaN at its end must leave
/// the whole residual unchanged.
namespace hipress::kernels {

/// Number of elements of the block that begins at element `first` of a slice.
template <class Algorithm>
HIPRESS_LANES int elements_in_block(const Algorithm& algorithm, std::int64_t elements,
                                    std::int64_t first) {
  const std::int64_t left = elements - first, size = algorithm.block();
  return static_cast<int>(left < size ? left : size);
}

/// Decodes one block of a message word by word, before the rotation back.
template <class Algorithm, class F>
class BlockReader {
 public:
  bool non_finite;

  HIPRESS_LANES BlockReader(const Algorithm& algorithm, const std::byte* message,
                            const BlockLayout& layout, std::int64_t block)
      : bits_(code_bits(algorithm)), levels_(algorithm.levels()) {
    QuantizerHeader header;
    __builtin_memcpy(&header, message, sizeof header);
    non_finite = header.non_finite != 0;
    float sent[Algorithm::kSent];
    __builtin_memcpy(sent, message + kSentOffset + block * static_cast<std::int64_t>(sizeof sent),
                     sizeof sent);
    block_ = algorithm.decoded_block_code().of(sent);
    const std::int64_t word = block * (algorithm.block() / kWordElements);
    codes_ = reinterpret_cast<const std::uint8_t*>(message + layout.codes_offset) +
             word * code_bytes(bits_);
  }

  HIPRESS_LANES Word<F> operator()(int word) const {
    Word<F> decoded;
    const WordCodes<F> read = load_word_codes<F>(bits_, codes_ + word * code_bytes(bits_));
    for (int v = 0; v < kVectors<F>; ++v) {
      decoded.part[v] = levels_.template of<F>(block_, read.part[v]);
    }
    return decoded;
  }

 private:
  const std::uint8_t* codes_;
  const int bits_;
  typename Algorithm::DecodedBlock block_;
  decltype(std::declval<const Algorithm&>().levels()) levels_;
};

// ---- encoding ----

template <class Algorithm, class F>
class BlockEncoder {
 public:
  HIPRESS_LANES BlockEncoder(const Algorithm& algorithm, const EncodeItem& item)
      : algorithm_(algorithm),
        item_(item),
        layout_(block_layout(algorithm, item.elements)),
        rule_(ValueRule::of(item)),
        bits_(code_bits(algorithm)),
        measure_(algorithm.measure(draw_stream(item.key, item.elements))),
        block_code_(algorithm.encoded_block_code()),
        coder_(algorithm.coder(draw_stream(item.key, item.elements))) {}

  HIPRESS_LANES void run() {
    QuantizerHeader header;
    header.elements = static_cast<std::uint32_t>(item_.elements);
    header.tag = Algorithm::kTag;
    header.planes = static_cast<std::uint8_t>(bits_);
    __builtin_memset(item_.message, 0, static_cast<std::size_t>(kSentOffset));
    alignas(64) float room[kMaxBlock];
    U flags = {};
    bool finite = true;
    for (std::int64_t block = 0; block < layout_.blocks; ++block) {
      const std::int64_t first = block * algorithm_.block();
      const int count = elements_in_block(algorithm_, item_.elements, first);
      const float* const values = values_of(first, count, room, flags);
      const EncodedBlock made = block_code_.of(measured(values, first, count, flags));
      for (const float sent : made.sent) finite = finite && is_finite(sent);
      __builtin_memcpy(sent_of(block), made.sent, sizeof made.sent);
      encode(made, values, first, count);
      if (rule_.adds_residual) look_at_decoded(block, count, flags);
    }
    const std::int64_t sent_bytes = layout_.bytes - kSentOffset;
    if (!finite || bits_of_mask(has_bit(flags, 0x80000000u)) != 0) {
      header.non_finite = 1;
      __builtin_memset(item_.message + kSentOffset, 0, static_cast<std::size_t>(sent_bytes));
    } else {
      std::byte* const end = sent_of(layout_.blocks);
      __builtin_memset(end, 0,
                       static_cast<std::size_t>(item_.message + layout_.codes_offset - end));
      if (rule_.adds_residual) update_residual();
    }
    __builtin_memcpy(item_.message, &header, sizeof header);
  }

 private:
  using U = UnsignedLanes<F>;
  using Measure =
      decltype(std::declval<const Algorithm&>().measure(std::declval<const DrawStream&>()));
  using BlockCode = decltype(std::declval<const Algorithm&>().encoded_block_code());
  using Coder = decltype(std::declval<const Algorithm&>().coder(std::declval<const DrawStream&>()));
  using EncodedBlock = typename Algorithm::EncodedBlock;
  using Partial = typename Measure::template Partial<F>;
  static constexpr int kWidth = Lanes<F>::kWidth;

  HIPRESS_LANES std::byte* sent_of(std::int64_t block) const {
    return item_.message + kSentOffset +
           block * Algorithm::kSent * static_cast<std::int64_t>(sizeof(float));
  }

  /// A block's values as the algorithm gets them: unrotated_values(), rotated if it rotates.
  HIPRESS_LANES const float* values_of(std::int64_t first, int count, float* room, U& flags) const {
    const float* const values = unrotated_values(first, count, room, flags);
    if (!algorithm_.rotates()) return values;
    if (values != room) {
      __builtin_memcpy(room, values, static_cast<std::size_t>(count) * sizeof(float));
    }
    rotate_block<F>(room, count);
    return room;
  }

  /// A block's values v: the inputs in place if they need no arithmetic, else computed in `room`. A
  /// residual makes v finite even where the input is not, so the inputs' non-finite flags are then
  /// added to `flags`.
  HIPRESS_LANES const float* unrotated_values(std::int64_t first, int count, float* room,
                                              U& flags) const {
    const float* const inputs = in_fp32<F>(item_.values, item_.type, first, count, room);
    if (!rule_.divisor.divides && !rule_.adds_residual) return inputs;
    for (int i = 0; i < count; i += kWordElements) {
      const int in_word = elements_in_word(count - i, 0);
      Word<F> word = load_word<F>(inputs + i, in_word);
      Word<F> residuals = {};
      if (rule_.adds_residual) {
        residuals = load_word<F>(item_.state.data + first + i, in_word);
        for (const F& part : word.part) flags = flags | non_finite_flag(part);
      }
      for (int v = 0; v < kVectors<F>; ++v) {
        word.part[v] = rule_(word.part[v], residuals.part[v]);
      }
      store_word(room + i, word, in_word);
    }
    return room;
  }

  /// Decodes a block of this message into `room`.
  HIPRESS_LANES void decode_own(std::int64_t block, int count, float* room) const {
    const BlockReader<Algorithm, F> read(algorithm_, item_.message, layout_, block);
    for (int i = 0; i < count; i += kWordElements) {
      store_word(room + i, read(i / kWordElements), elements_in_word(count - i, 0));
    }
    if (algorithm_.rotates()) rotate_block<F>(room, count);
  }

  /// Adds the non-finite flags of a block's decoded values to `flags`, because a residual must stay
  /// finite.
  HIPRESS_LANES void look_at_decoded(std::int64_t block, int count, U& flags) const {
    if constexpr (Algorithm::kErrorFeedback) {
      alignas(64) float decoded[kMaxBlock];
      decode_own(block, count, decoded);
      for (int i = 0; i < count; i += kWordElements) {
        const Word<F> word = load_word<F>(decoded + i, elements_in_word(count - i, 0));
        for (const F& part : word.part) flags = flags | non_finite_flag(part);
      }
    }
  }

  /// Residual = v minus the decoded message.
  HIPRESS_LANES void update_residual() const {
    if constexpr (Algorithm::kErrorFeedback) {
      alignas(64) float room[kMaxBlock], decoded[kMaxBlock];
      U flags = {};
      for (std::int64_t block = 0; block < layout_.blocks; ++block) {
        const std::int64_t first = block * algorithm_.block();
        const int count = elements_in_block(algorithm_, item_.elements, first);
        const float* const values = unrotated_values(first, count, room, flags);
        decode_own(block, count, decoded);
        for (int i = 0; i < count; i += kWordElements) {
          const int in_word = elements_in_word(count - i, 0);
          Word<F> residuals = load_word<F>(values + i, in_word);
          const Word<F> taken = load_word<F>(decoded + i, in_word);
          for (int v = 0; v < kVectors<F>; ++v) residuals.part[v] -= taken.part[v];
          store_word(item_.state.data + first + i, residuals, in_word);
        }
      }
    }
  }

  /// Results of a block's reductions; adds non-finite flags to `flags`.
  HIPRESS_LANES auto measured(const float* values, std::int64_t first, int count, U& flags) const {
    WordPartials<Partial, F> found;
    for (Partial& part : found.part) part = Partial::identity();
    const int full = count / kWordElements;
    for (int word = 0; word < full; ++word) {
      prefetch_word(values + word * kWordElements);
      found =
          combine(found, measured_word<true>(values + word * kWordElements,
                                             first + word * kWordElements, kWordElements, flags));
    }
    if (const int rest = count - full * kWordElements; rest > 0) {
      found = combine(found, measured_word<false>(values + full * kWordElements,
                                                  first + full * kWordElements, rest, flags));
    }
    return combine_lanes<F>(found);
  }

  template <bool kFull>
  HIPRESS_LANES WordPartials<Partial, F> measured_word(const float* values, std::int64_t first,
                                                       int count, U& flags) const {
    const Word<F> word = load_word<F>(values, kFull ? kWordElements : count);
    WordPartials<Partial, F> found;
    for (int v = 0; v < kVectors<F>; ++v) {
      flags = flags | non_finite_flag(word.part[v]);
      found.part[v] = measure_.template of<F>(word.part[v], first + v * kWidth);
      if (!kFull) found.part[v] = found.part[v].restricted(lanes_inside<F>(v, count));
    }
    return found;
  }

  HIPRESS_LANES void encode(const EncodedBlock& made, const float* values, std::int64_t first,
                            int count) const {
    auto* const codes = reinterpret_cast<std::uint8_t*>(item_.message + layout_.codes_offset) +
                        first / kWordElements * code_bytes(bits_);
    const int full = count / kWordElements;
    for (int word = 0; word < full; ++word) {
      encode_word<true>(made, values + word * kWordElements, first + word * kWordElements,
                        kWordElements, codes + word * code_bytes(bits_));
    }
    if (const int rest = count - full * kWordElements; rest > 0) {
      encode_word<false>(made, values + full * kWordElements, first + full * kWordElements, rest,
                         codes + full * code_bytes(bits_));
    }
  }

  template <bool kFull>
  HIPRESS_LANES void encode_word(const EncodedBlock& made, const float* values, std::int64_t first,
                                 int count, std::uint8_t* to) const {
    const Word<F> word = load_word<F>(values, kFull ? kWordElements : count);
    WordCodes<F> codes;
    for (int v = 0; v < kVectors<F>; ++v) {
      codes.part[v] = coder_.template of<F>(made, word.part[v], first + v * kWidth);
      if (!kFull) codes.part[v] = select(lanes_inside<F>(v, count), codes.part[v], U{});
    }
    store_word_codes<F>(bits_, to, codes);
  }

  const Algorithm algorithm_;
  const EncodeItem item_;
  const BlockLayout layout_;
  const ValueRule rule_;
  const int bits_;
  const Measure measure_;
  const BlockCode block_code_;
  const Coder coder_;
};

// ---- decoding ----

template <class Algorithm, class F>
class BlockDecoder {
 public:
  HIPRESS_LANES BlockDecoder(const Algorithm& algorithm, const DecodeItem& item)
      : algorithm_(algorithm),
        item_(item),
        layout_(block_layout(algorithm, item.elements)),
        own_(Divisor::of(item.own_divisor)),
        sum_(Divisor::of(item.sum_divisor)) {}

  /// Index of the first damaged message, or the number of messages.
  HIPRESS_LANES std::size_t first_damaged() const {
    for (std::size_t i = 0; i < item_.messages.size(); ++i) {
      QuantizerHeader header;
      __builtin_memcpy(&header, item_.messages[i], sizeof header);
      if (!begins_as(header, algorithm_, item_.elements)) return i;
      bool finite = true;
      const auto* const sent = reinterpret_cast<const float*>(item_.messages[i] + kSentOffset);
      for (std::int64_t k = 0; k < layout_.blocks * Algorithm::kSent; ++k) {
        finite = finite & is_finite(sent[k]);
      }
      if (!finite) return i;
    }
    return item_.messages.size();
  }

  HIPRESS_LANES void run() const {
    const bool in_place = item_.type == ValueType::kFloat32;
    const bool streams = in_place && item_.mode == DecodeMode::kOverwrite &&
                         should_stream<F>(static_cast<float*>(item_.values), item_.elements);
    alignas(64) float room[kMaxBlock];
    for (std::int64_t block = 0; block < layout_.blocks; ++block) {
      const std::int64_t first = block * algorithm_.block();
      const int count = elements_in_block(algorithm_, item_.elements, first);
      float* const values = in_place ? static_cast<float*>(item_.values) + first : room;
      if (item_.mode == DecodeMode::kOverwrite) {
        overwrite(block, values, count, streams);
      } else {
        if (!in_place) widen<F>(item_.values, item_.type, first, count, room);
        add_up(block, values, count);
      }
      if (!in_place) round_to<F>(item_.values, item_.type, first, count, room);
    }
    if (streams) finish_streaming();
  }

 private:
  using Reader = BlockReader<Algorithm, F>;

  HIPRESS_LANES Reader reader(std::size_t message, std::int64_t block) const {
    return Reader(algorithm_, item_.messages[message], layout_, block);
  }

  HIPRESS_LANES static void fill(float* values, int count, float with) {
    for (int i = 0; i < count; ++i) values[i] = with;
  }

  /// Decodes a block into `values`, not yet rotated back; `streams` selects non-temporal stores.
  HIPRESS_LANES void write(const Reader& read, float* values, int count, bool streams) const {
    const int full = count / kWordElements;
    if (streams) {
      for (int word = 0; word < full; ++word) {
        stream_word(values + word * kWordElements, read(word));
      }
    } else {
      for (int word = 0; word < full; ++word) {
        store_word(values + word * kWordElements, read(word), kWordElements);
      }
    }
    if (const int rest = count - full * kWordElements; rest > 0) {
      store_word(values + full * kWordElements, read(full), rest);
    }
  }

  HIPRESS_LANES void overwrite(std::int64_t block, float* values, int count, bool streams) const {
    const Reader read = reader(0, block);
    if (read.non_finite) return fill(values, count, not_a_number());
    write(read, values, count, streams && !algorithm_.rotates());
    if (algorithm_.rotates()) rotate_block<F>(values, count);
  }

  /// Computes values = (values / own + words) / sum.
  template <class Words>
  HIPRESS_LANES void add(const Words& words, float* values, int count, const Divisor& own,
                         const Divisor& sum) const {
    for (int i = 0; i < count; i += kWordElements) {
      const int in_word = elements_in_word(count - i, 0);
      prefetch_word(values + i);
      Word<F> total = load_word<F>(values + i, in_word);
      const Word<F> term = words(i / kWordElements, in_word);
      for (int v = 0; v < kVectors<F>; ++v) {
        total.part[v] = sum(own(total.part[v]) + term.part[v]);
      }
      store_word(values + i, total, in_word);
    }
  }

  HIPRESS_LANES void add_up(std::int64_t block, float* values, int count) const {
    const std::size_t messages = item_.messages.size();
    if (messages == 0) {
      for (int i = 0; i < count; ++i) values[i] = sum_(own_(values[i]));
      return;
    }
    const Divisor none = Divisor::of(1);
    for (std::size_t i = 0; i < messages; ++i) {
      const Divisor& own = i == 0 ? own_ : none;
      const Divisor& sum = i + 1 == messages ? sum_ : none;
      const Reader read = reader(i, block);
      if (read.non_finite) {
        add(
            [](int, int) __attribute__((always_inline)) {
              Word<F> nothing;
              for (F& part : nothing.part) part = broadcast<F>(not_a_number());
              return nothing;
            },
            values, count, own, sum);
      } else if (algorithm_.rotates()) {
        alignas(64) float decoded[kMaxBlock];
        write(read, decoded, count, false);
        rotate_block<F>(decoded, count);
        add(
            [&](int word, int in_word) __attribute__((always_inline)) {
              return load_word<F>(decoded + word * kWordElements, in_word);
            },
            values, count, own, sum);
      } else {
        add(
            [&](int word, int) __attribute__((always_inline)) { return read(word); }, values, count,
            own, sum);
      }
    }
  }

  const Algorithm algorithm_;
  const DecodeItem& item_;
  const BlockLayout layout_;
  const Divisor own_, sum_;
};

template <class Algorithm, class F>
__attribute__((noinline)) void encode_blocks(const Algorithm& algorithm, const EncodeItem& item) {
  BlockEncoder<Algorithm, F>(algorithm, item).run();
}

template <class Algorithm, class F>
__attribute__((noinline)) std::size_t decode_blocks(const Algorithm& algorithm,
                                                    const DecodeItem& item) {
  const BlockDecoder<Algorithm, F> decoder(algorithm, item);
  const std::size_t damaged = decoder.first_damaged();
  if (damaged == item.messages.size()) decoder.run();
  return damaged;
}

/// Functions of a block quantiser's CompiledAlgorithm, with lanes F.
template <class Algorithm, class F>
struct HostBlockFunctions : BoundFunctions<Algorithm, F> {
  using BoundFunctions<Algorithm, F>::algorithm;

  static std::int64_t encoded_bytes(const BoundAlgorithm& bound, std::int64_t elements) {
    return block_layout(algorithm(bound), elements).bytes;
  }
  static void encode(const BoundAlgorithm& bound, const EncodeItem& item) {
    if (item.message_bytes != nullptr) *item.message_bytes = encoded_bytes(bound, item.elements);
    encode_blocks<Algorithm, F>(algorithm(bound), item);
  }
  static std::size_t decode(const BoundAlgorithm& bound, const DecodeItem& item) {
    return decode_blocks<Algorithm, F>(algorithm(bound), item);
  }
};

template <class Algorithm, class F>
constexpr CompiledAlgorithm host_block_quantizer(const char* name,
                                                 const DeclaredParameter* parameters, int count) {
  using Functions = HostBlockFunctions<Algorithm, F>;
  return {.name = name,
          .parameters = parameters,
          .parameter_count = count,
          .error_feedback = Algorithm::kErrorFeedback,
          .state_arrays = Algorithm::kErrorFeedback ? 1 : 0,
          .deferrable = false,
          .bind = Functions::bind,
          .encoded_bytes = Functions::encoded_bytes,
          .encode = Functions::encode,
          .decode = Functions::decode,
          .settle = nullptr,
          .planes_offset = 0,
          .planes = nullptr,
          .levels = nullptr,
          .cuda = {.kind = CudaKind::kBlocks}};
}

}  // namespace hipress::kernels
