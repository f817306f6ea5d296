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

/// The frame around a quantiser of blocks on a CPU, for float lanes F. Included by the files of one
/// algorithm only, each compiled for its own instruction set: whatever is not forced inline here
/// must be a template on Algorithm and F, so that no function compiled for one instruction set can
/// stand in for another's.
///
/// A block fits the L1 cache, so it is read from memory only once, to be measured; it is still in
/// the cache when it is coded.
namespace hipress::kernels {

// ---- encoding ----

template <class Algorithm, class F>
class BlockEncoder {
 public:
  HIPRESS_LANES BlockEncoder(const Algorithm& algorithm, const EncodeItem& item)
      : algorithm_(algorithm),
        item_(item),
        layout_(block_layout(algorithm, item.elements)),
        divisor_(Divisor::of(item.divisor)),
        measure_(algorithm.measure(draw_stream(item.key, item.elements))),
        block_code_(algorithm.encoded_block_code()),
        coder_(algorithm.coder(draw_stream(item.key, item.elements))) {}

  HIPRESS_LANES void run() {
    QuantizerHeader header;
    header.elements = static_cast<std::uint32_t>(item_.elements);
    header.tag = Algorithm::kTag;
    header.planes = Algorithm::kCodeBits;
    __builtin_memset(item_.message, 0, static_cast<std::size_t>(kSentOffset));
    const std::int64_t size = algorithm_.block();
    alignas(64) float room[kMaxBlock];
    U flags = {};
    bool finite = true;
    for (std::int64_t block = 0; block < layout_.blocks; ++block) {
      const std::int64_t first = block * size;
      const int count =
          static_cast<int>(item_.elements - first < size ? item_.elements - first : size);
      const float* const values = values_of(first, count, room);
      const EncodedBlock made = block_code_.of(measured(values, first, count, flags));
      for (const float sent : made.sent) finite = finite && is_finite(sent);
      __builtin_memcpy(sent_of(block), made.sent, sizeof made.sent);
      encode(made, values, first, count);
    }
    const std::int64_t sent_bytes = layout_.bytes - kSentOffset;
    if (!finite || bits_of_mask(has_bit(flags, 0x80000000u)) != 0) {
      header.non_finite = 1;
      __builtin_memset(item_.message + kSentOffset, 0, static_cast<std::size_t>(sent_bytes));
    } else {
      std::byte* const end = sent_of(layout_.blocks);
      __builtin_memset(end, 0,
                       static_cast<std::size_t>(item_.message + layout_.codes_offset - end));
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

  /// A block's values, divided and rotated: where they lie if that leaves them as they are, else in
  /// `room`.
  HIPRESS_LANES const float* values_of(std::int64_t first, int count, float* room) const {
    const float* const inputs = in_fp32<F>(item_.values, item_.type, first, count, room);
    if (!divisor_.divides && !algorithm_.rotates()) return inputs;
    for (int i = 0; i < count; i += kWordElements) {
      const int in_word = elements_in_word(count - i, 0);
      Word<F> word = load_word<F>(inputs + i, in_word);
      for (F& part : word.part) part = divisor_(part);
      store_word(room + i, word, in_word);
    }
    if (algorithm_.rotates()) rotate_block<F>(room, count);
    return room;
  }

  /// What a block's reductions come to; adds to `flags`.
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
                        first / kWordElements * kCodeBytes<Algorithm>;
    const int full = count / kWordElements;
    for (int word = 0; word < full; ++word) {
      encode_word<true>(made, values + word * kWordElements, first + word * kWordElements,
                        kWordElements, codes + word * kCodeBytes<Algorithm>);
    }
    if (const int rest = count - full * kWordElements; rest > 0) {
      encode_word<false>(made, values + full * kWordElements, first + full * kWordElements, rest,
                         codes + full * kCodeBytes<Algorithm>);
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
    store_word_codes<Algorithm::kCodeBits, F>(to, codes);
  }

  const Algorithm algorithm_;
  const EncodeItem item_;
  const BlockLayout layout_;
  const Divisor divisor_;
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
        sum_(Divisor::of(item.sum_divisor)),
        block_code_(algorithm.decoded_block_code()),
        levels_(algorithm.levels()) {}

  /// The number of the first message that is damaged; as many as there are if none is.
  HIPRESS_LANES std::size_t first_damaged() const {
    for (std::size_t i = 0; i < item_.messages.size(); ++i) {
      const QuantizerHeader header = header_of(i);
      if (!begins_as<Algorithm>(header, item_.elements)) return i;
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
    const std::int64_t size = algorithm_.block();
    const bool in_place = item_.type == ValueType::kFloat32;
    const bool streams = in_place && item_.mode == DecodeMode::kOverwrite &&
                         should_stream<F>(static_cast<float*>(item_.values), item_.elements);
    alignas(64) float room[kMaxBlock];
    for (std::int64_t block = 0; block < layout_.blocks; ++block) {
      const std::int64_t first = block * size;
      const int count =
          static_cast<int>(item_.elements - first < size ? item_.elements - first : size);
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
  using BlockCode = decltype(std::declval<const Algorithm&>().decoded_block_code());
  using Levels = decltype(std::declval<const Algorithm&>().levels());

  HIPRESS_LANES QuantizerHeader header_of(std::size_t message) const {
    QuantizerHeader header;
    __builtin_memcpy(&header, item_.messages[message], sizeof header);
    return header;
  }

  /// Decoded words of one block of a message, before they are rotated back.
  struct Reader {
    const std::uint8_t* codes;
    typename Algorithm::DecodedBlock block;
    const Levels& levels;
    bool non_finite;

    HIPRESS_LANES Word<F> operator()(int word) const {
      Word<F> decoded;
      const WordCodes<F> read =
          load_word_codes<Algorithm::kCodeBits, F>(codes + word * kCodeBytes<Algorithm>);
      for (int v = 0; v < kVectors<F>; ++v) {
        decoded.part[v] = levels.template of<F>(block, read.part[v]);
      }
      return decoded;
    }
  };

  HIPRESS_LANES Reader reader(std::size_t message, std::int64_t block) const {
    const std::byte* const from = item_.messages[message];
    float sent[Algorithm::kSent];
    __builtin_memcpy(sent, from + kSentOffset + block * static_cast<std::int64_t>(sizeof sent),
                     sizeof sent);
    const std::int64_t word = block * (algorithm_.block() / kWordElements);
    return {reinterpret_cast<const std::uint8_t*>(from + layout_.codes_offset) +
                word * kCodeBytes<Algorithm>,
            block_code_.of(sent), levels_, header_of(message).non_finite != 0};
  }

  HIPRESS_LANES static void fill(float* values, int count, float with) {
    for (int i = 0; i < count; ++i) values[i] = with;
  }

  /// values = what the block of a message decodes to.
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

  /// values = (values / own + what the words are) / sum.
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
  const BlockCode block_code_;
  const Levels levels_;
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

/// The functions of a quantiser of blocks' CompiledAlgorithm, with lanes F.
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
          .error_feedback = false,
          .state_arrays = 0,
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
