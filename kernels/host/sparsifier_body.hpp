#pragma once

#include <cstdint>
#include <new>
#include <stdexcept>

#include "kernels/codec/codec.hpp"
#include "kernels/codec/slice.hpp"
#include "kernels/frames/bound_functions.hpp"
#include "kernels/frames/compiled_algorithm.hpp"
#include "kernels/frames/draws.hpp"
#include "kernels/frames/sparsifier.hpp"
#include "kernels/frames/typed_values.hpp"
#include "kernels/frames/words.hpp"

/// Frame of sparsifiers on a CPU: the loops around an algorithm's arithmetic, for float lanes F
/// (codec/lanes.hpp). Only files of a single algorithm include this header; each is compiled for
/// one instruction set. Every function that is not forced inline must be a template on F, so that
/// the linker cannot replace it by one compiled for a different instruction set.
namespace hipress::kernels {

/// Thread-local memory for the entries that a first pass collects. It is reused, because allocating
/// it takes as long as the pass.
template <class F>
class SparsifierScratch {
 public:
  SparsifierScratch() = default;
  SparsifierScratch(const SparsifierScratch&) = delete;
  SparsifierScratch& operator=(const SparsifierScratch&) = delete;
  ~SparsifierScratch() { __builtin_free(data_); }

  static std::uint32_t* numbers(std::int64_t count) {
    SparsifierScratch& mine = of_thread();
    if (count > mine.count_) {
      __builtin_free(mine.data_);
      mine.count_ = 0;
      mine.data_ =
          static_cast<std::uint32_t*>(__builtin_malloc(static_cast<std::size_t>(count) * 4));
      if (mine.data_ == nullptr) throw std::bad_alloc();
      mine.count_ = count;
    }
    return mine.data_;
  }

  /// Frees the memory if it exceeds 256 MiB.
  static void give_back() {
    SparsifierScratch& mine = of_thread();
    if (mine.count_ <= std::int64_t{1} << 26) return;
    __builtin_free(mine.data_);
    mine.data_ = nullptr;
    mine.count_ = 0;
  }

 private:
  static SparsifierScratch& of_thread() {
    static thread_local SparsifierScratch mine;
    return mine;
  }

  std::uint32_t* data_ = nullptr;
  std::int64_t count_ = 0;
};

/// The rank-th largest key, and the number of keys that are larger than it.
struct RankedKey {
  std::uint32_t key = 0;
  std::int64_t larger = 0;
};

/// Finds the rank-th largest key by radix selection: a histogram of all keys, then one of the keys
/// in the bin that holds it, and so on. `each(f)` calls f(key) for every key. Requires 1 ≤ `rank` ≤
/// number of keys.
template <class F, class Each>
__attribute__((noinline)) RankedKey ranked_key(std::int64_t rank, const Each& each) {
  constexpr int kBits = 11;
  std::uint32_t lowest = ~0u, highest = 0;
  each([&](std::uint32_t key) __attribute__((always_inline)) {
    lowest = key < lowest ? key : lowest;
    highest = key > highest ? key : highest;
  });
  std::int64_t left = rank;
  while (lowest < highest) {
    const std::uint32_t range = highest - lowest;
    const int width = 32 - __builtin_clz(range);
    const int shift = width > kBits ? width - kBits : 0;
    std::int64_t histogram[1 << kBits] = {};
    each([&](std::uint32_t key) __attribute__((always_inline)) {
      const std::uint32_t above = key - lowest;
      if (above <= range) ++histogram[above >> shift];
    });
    std::uint32_t bin = range >> shift;
    while (histogram[bin] < left && bin > 0) left -= histogram[bin--];
    lowest += bin << shift;
    highest = lowest + ((1u << shift) - 1);
  }
  return {lowest, rank - left};
}

/// Encoder of one slice. kKept: states exist and are updated; otherwise they are 0 and not kept.
template <class Algorithm, class F, bool kKept>
class SparsifierEncoder {
 public:
  HIPRESS_LANES SparsifierEncoder(const Algorithm& algorithm, const EncodeItem& item)
      : item_(item),
        rule_(rule_of(item)),
        selection_(algorithm.selection(item.elements)),
        count_(algorithm.count(item.elements)),
        plan_(SelectionPlan::of(item.elements, count_)) {}

  HIPRESS_LANES void run() {
    SparsifierHeader start;
    start.header.elements = static_cast<std::uint32_t>(item_.elements);
    start.header.tag = Algorithm::kTag;
    if (kKept && !all_finite()) {
      start.header.non_finite = 1;
    } else {
      entries_ = SparsifierScratch<F>::numbers(2 * (plan_.capacity + kSpare));
      start.header.non_finite = collect(first_threshold()) ? 0 : 1;
    }
    if (start.header.non_finite == 0 && count_ > 0) start.count = write();
    finish(start);
    SparsifierScratch<F>::give_back();
  }

 private:
  static constexpr int kArrays = kSparsifierArrays<Algorithm>;
  static constexpr int kResidual = Algorithm::kErrorFeedback ? 1 : 0;
  static constexpr std::uint32_t kAboveAll = 0x7f800000u;  ///< above every magnitude_key
  /// Room past the capacity: take() appends a word's entries, as whole vectors, before it checks.
  static constexpr int kSpare = 2 * kWordElements;
  static constexpr int kMaxArrays = kArrays > 0 ? kArrays : 1;
  static constexpr bool kStored = kKept && kScoreArray<Algorithm> >= 0;
  using U = UnsignedLanes<F>;

  HIPRESS_LANES static ValueRule rule_of(const EncodeItem& item) {
    ValueRule rule = ValueRule::of(item);
    rule.adds_residual = kKept && Algorithm::kErrorFeedback;
    return rule;
  }

  HIPRESS_LANES float* array(int number) const {
    return item_.state.data + number * item_.state.stride;
  }
  HIPRESS_LANES std::uint32_t* indices() const { return entries_; }
  HIPRESS_LANES float* values() const {
    return reinterpret_cast<float*>(entries_ + plan_.capacity + kSpare);
  }

  HIPRESS_LANES bool all_finite() const {
    U flags = {};
    read_in_fp32<F>(
        item_.values, item_.type, item_.elements,
        [&](const float* inputs, std::int64_t, std::int64_t elements)
            __attribute__((always_inline)) {
              for (std::int64_t word = 0; word < words_of(elements); ++word) {
                const float* const from = inputs + word * kWordElements;
                prefetch_word(from);
                const Word<F> values = load_word<F>(from, elements_in_word(elements, word));
                for (int v = 0; v < kVectors<F>; ++v)
                  flags = flags | non_finite_flag(values.part[v]);
              }
            });
    return bits_of_mask(has_bit(flags, 0x80000000u)) == 0;
  }

  // ---- entries, before states are updated ----

  /// Computes an element's entry, the value to send if it is selected. Does not update states.
  HIPRESS_LANES float entry(std::int64_t element) const {
    float state[kMaxArrays] = {};
    if constexpr (kKept) {
      for (int i = 0; i < kArrays; ++i) state[i] = array(i)[element];
    }
    const float value = rule_(load_value(item_.values, item_.type, element),
                              kKept && kResidual == 1 ? state[0] : 0.0f);
    if constexpr (!kKept) return selection_.template first<float>(value);
    return selection_.template of<float>(value, state + kResidual);
  }

  /// Computes an element's entry once states are up to date.
  HIPRESS_LANES float entry_now(std::int64_t element) const {
    if constexpr (kStored) return array(kScoreArray<Algorithm>)[element];
    return entry(element);
  }

  /// Hint of the last encode of the slice, or all zeros.
  HIPRESS_LANES SparsifierHint last_hint() const {
    SparsifierHint hint;
    if (item_.state.deferred != nullptr)
      __builtin_memcpy(&hint, item_.state.deferred->wire, sizeof hint);
    return hint.magic == SparsifierHint::kMagic ? hint : SparsifierHint{};
  }

  /// Initial threshold of the first pass: the last encode's hint, else from a sample, else 1, which
  /// collects all entries except zeros.
  HIPRESS_LANES std::uint32_t first_threshold() const {
    if (count_ <= 0) return kAboveAll;
    if (const SparsifierHint hint = last_hint(); hint.threshold > 0) return hint.threshold;
    if (plan_.sample_rank == 0) return 1;
    return sampled_threshold([&](std::int64_t element)
                                 __attribute__((always_inline)) { return entry(element); });
  }

  HIPRESS_LANES static std::uint32_t at_least_one(std::uint32_t key) { return key < 1 ? 1 : key; }

  /// Threshold from a sample: one element of each of kSample parts of the slice, chosen by a hash.
  template <class Entry>
  HIPRESS_LANES std::uint32_t sampled_threshold(const Entry& entry) const {
    const std::int64_t part = item_.elements / SelectionPlan::kSample;
    const RankedKey found = ranked_key<F>(
        plan_.sample_rank, [&](const auto& take) __attribute__((always_inline)) {
          for (std::int64_t i = 0; i < SelectionPlan::kSample; ++i) {
            const std::uint64_t within =
                mix_64(static_cast<std::uint64_t>(i)) % static_cast<std::uint64_t>(part);
            take(magnitude_key(entry(i * part + static_cast<std::int64_t>(within))));
          }
        });
    return at_least_one(found.key);
  }

  // ---- the pass that updates states and collects entries ----

  /// Collects entries of at least `threshold` and updates states. Returns false if the slice is not
  /// finite, which only this pass detects if there are no states.
  HIPRESS_LANES bool collect(std::uint32_t threshold) {
    threshold_ = threshold;
    collected_ = 0;
    F least = broadcast<F>(as_float(threshold));
    U flags = {};
    read_in_fp32<F>(
        item_.values, item_.type, item_.elements,
        [&](const float* inputs, std::int64_t first, std::int64_t elements)
            __attribute__((always_inline)) {
              const std::int64_t full = elements / kWordElements * kWordElements;
              for (std::int64_t i = 0; i < full; i += kWordElements) {
                collect_word(inputs + i, first + i, kWordElements, least, flags);
              }
              if (full < elements) {
                collect_word(inputs + full, first + full, static_cast<int>(elements - full), least,
                             flags);
              }
            });
    return bits_of_mask(has_bit(flags, 0x80000000u)) == 0;
  }

  /// Processes the word that begins with element `first`, whose inputs are at `from`.
  HIPRESS_LANES void collect_word(const float* from, std::int64_t first, int count, F& least,
                                  U& flags) {
    prefetch_word(from);
    const Word<F> inputs = load_word<F>(from, count);
    Word<F> states[kMaxArrays] = {};
    if constexpr (kKept) {
      for (int i = 0; i < kArrays; ++i) states[i] = load_word<F>(array(i) + first, count);
    }
    Word<F> entries;
    std::uint32_t chosen = 0;
    for (int v = 0; v < kVectors<F>; ++v) {
      if constexpr (!kKept) flags = flags | non_finite_flag(inputs.part[v]);
      F state[kMaxArrays];
      for (int i = 0; i < kArrays; ++i) state[i] = states[i].part[v];
      const F value = rule_(inputs.part[v], kResidual == 1 ? state[0] : F{});
      if constexpr (kResidual == 1) state[0] = value;
      if constexpr (kKept) {
        entries.part[v] = selection_.template of<F>(value, state + kResidual);
      } else {
        entries.part[v] = selection_.template first<F>(value);
      }
      for (int i = 0; i < kArrays; ++i) states[i].part[v] = state[i];
      chosen |= bits_of_mask(is_entry(entries.part[v], least)) << (v * Lanes<F>::kWidth);
    }
    if constexpr (kKept) {
      for (int i = 0; i < kArrays; ++i) store_word(array(i) + first, states[i], count);
    }
    take(chosen & first_bits(count), first, entries, least);
  }

  /// Appends a word's chosen entries; raises the threshold when they exceed the capacity.
  HIPRESS_LANES void take(std::uint32_t chosen, std::int64_t first, const Word<F>& entries,
                          F& least) {
    note(chosen, first, entries);
    if (collected_ > plan_.capacity) {
      keep_largest();
      least = broadcast<F>(as_float(threshold_));
    }
  }

  HIPRESS_LANES void note(std::uint32_t chosen, std::int64_t first, const Word<F>& entries) {
#if defined(__AVX512F__)
    if constexpr (Lanes<F>::kWidth == 16) {
      for (int v = 0; v < kVectors<F>; ++v) {
        const std::uint32_t lanes = chosen >> (v * 16) & 0xffffu;
        if (lanes == 0) continue;
        const U numbers =
            broadcast_bits<F>(static_cast<std::uint32_t>(first + v * 16)) + lane_numbers<F>();
        store_chosen(lanes, entries.part[v], values() + collected_, numbers,
                     indices() + collected_);
        collected_ += __builtin_popcount(lanes);
      }
      return;
    }
#endif
    if (chosen == 0) return;
    float numbers[kWordElements];
    for (int v = 0; v < kVectors<F>; ++v) {
      store(numbers + v * Lanes<F>::kWidth, entries.part[v]);
    }
    for (; chosen != 0; chosen &= chosen - 1) {
      const int lane = __builtin_ctz(chosen);
      indices()[collected_] = static_cast<std::uint32_t>(first + lane);
      values()[collected_++] = numbers[lane];
    }
  }

  /// Reduces the collected entries to the `count_` largest; lower indices win ties. Raises the
  /// threshold, so that later entries are collected only if they exceed the smallest of these.
  __attribute__((noinline)) void keep_largest() {
    const RankedKey least = ranked_entry(count_);
    std::int64_t ties = count_ - least.larger, kept = 0;
    for (std::int64_t i = 0; i < collected_; ++i) {
      const float value = values()[i];
      const std::uint32_t key = magnitude_key(value);
      indices()[kept] = indices()[i];
      values()[kept] = value;
      kept += key > least.key ? 1 : 0;
      if (key == least.key && ties-- > 0) ++kept;
    }
    collected_ = kept;
    threshold_ = least.key + 1;
  }

  // ---- the entries to send ----

  /// True if too few entries were collected although there may be more. The caller collects again,
  /// with a sampled threshold or with none.
  HIPRESS_LANES bool missed() const { return collected_ < count_ && threshold_ > 1; }

  /// Collects entries again, after collect() has updated the states. Takes them from the state
  /// array that holds them (kScoreArray), if there is one.
  HIPRESS_LANES void collect_again(std::uint32_t threshold) {
    if constexpr (!kStored) {
      collect(threshold);
    } else {
      threshold_ = threshold;
      collected_ = 0;
      F least = broadcast<F>(as_float(threshold));
      const float* const scores = array(kScoreArray<Algorithm>);
      for (std::int64_t word = 0; word < words_of(item_.elements); ++word) {
        const std::int64_t first = word * kWordElements;
        const int count = elements_in_word(item_.elements, word);
        const Word<F> entries = load_word<F>(scores + first, count);
        std::uint32_t chosen = 0;
        for (int v = 0; v < kVectors<F>; ++v) {
          chosen |= bits_of_mask(is_entry(entries.part[v], least)) << (v * Lanes<F>::kWidth);
        }
        take(chosen & first_bits(count), first, entries, least);
      }
    }
  }

  /// Makes sure that the collected entries include all entries to send. Returns the smallest key to
  /// send; key 0 if all collected entries are sent.
  HIPRESS_LANES RankedKey settle_on() {
    if (missed() && plan_.sample_rank > 0) {
      collect_again(sampled_threshold([&](std::int64_t element) __attribute__((always_inline)) {
        return entry_now(element);
      }));
    }
    if (missed()) collect_again(1);
    if (collected_ <= count_) return {};
    return ranked_entry(count_);
  }

  /// The rank-th largest of the collected entries.
  HIPRESS_LANES RankedKey ranked_entry(std::int64_t rank) const {
    return ranked_key<F>(
        rank, [&](const auto& take) __attribute__((always_inline)) {
          for (std::int64_t i = 0; i < collected_; ++i) take(magnitude_key(values()[i]));
        });
  }

  /// Tail exponent a near the smallest entry sent: the number of entries above a magnitude x falls
  /// as x^-a. Estimated from the entries between the threshold and the smallest entry sent.
  HIPRESS_LANES float tail_exponent(std::uint32_t least) const {
    constexpr float kUnknown = 8, kMin = 2, kMax = 100;
    const float more = static_cast<float>(collected_) / static_cast<float>(count_);
    const float higher = as_float(least) / as_float(threshold_);
    if (!(more > 1.02f && higher > 1.0001f)) return kUnknown;
    const float exponent = __builtin_logf(more) / __builtin_logf(higher);
    return exponent < kMin ? kMin : exponent > kMax ? kMax : exponent;
  }

  /// Expected factor by which the smallest sent entry changes until the next encode, if it changed
  /// by the factor `growth` since the last. Accumulators that began at zero grow by 2, 3/2, 4/3 …:
  /// 1 + 1/t is followed by 1 + 1/(t + 1). If the entry shrank, half of the change is put down to
  /// chance.
  HIPRESS_LANES static float expected_growth(float growth) {
    if (growth <= 1) return 0.5f + 0.5f * growth;
    return 1 + 0.95f * (1 - 1 / (growth < 2 ? growth : 2));
  }

  /// Threshold for the next encode, from the smallest entry that was sent (`least`; if it is 0,
  /// from this encode's threshold). It aims at 1.5 times as many entries as are sent, and at a
  /// larger multiple for small counts, because those vary more.
  HIPRESS_LANES SparsifierHint next_hint(std::uint32_t least) const {
    SparsifierHint hint{SparsifierHint::kMagic, 0, least > 0 ? least : threshold_};
    if (count_ < 1 || collected_ < count_) return hint;
    const SparsifierHint last = last_hint();
    const float growth = last.least > 0 ? as_float(hint.least) / as_float(last.least) : 1;
    const float surplus = 1.5f + 4 / __builtin_sqrtf(static_cast<float>(count_));
    const float below = __builtin_powf(surplus, -1 / tail_exponent(hint.least));
    const float threshold = as_float(hint.least) * expected_growth(growth) * below;
    if (threshold < __builtin_inff()) hint.threshold = at_least_one(as_bits(threshold));
    return hint;
  }

  /// Writes the entries and returns their number.
  HIPRESS_LANES std::uint32_t write() {
    const RankedKey least = settle_on();
    auto* const to_indices =
        reinterpret_cast<std::uint32_t*>(item_.message + sizeof(SparsifierHeader));
    auto* const to_values = reinterpret_cast<float*>(item_.message + sizeof(SparsifierHeader) +
                                                     sparsifier_array_bytes(count_));
    std::int64_t ties = count_ - least.larger;
    std::int64_t sent = 0;
    for (std::int64_t i = 0; i < collected_ && sent < count_; ++i) {
      const float value = values()[i];
      const std::uint32_t key = magnitude_key(value);
      // Writes every entry, but counts only those to send: a branch would be mispredicted.
      to_indices[sent] = indices()[i];
      to_values[sent] = value;
      sent += key > least.key ? 1 : 0;
      if (key == least.key && ties-- > 0) ++sent;
    }
    if constexpr (kKept) clear(to_indices, sent);
    if (item_.state.deferred != nullptr) {
      const SparsifierHint hint = next_hint(least.key);
      __builtin_memcpy(item_.state.deferred->wire, &hint, sizeof hint);
    }
    return static_cast<std::uint32_t>(sent);
  }

  HIPRESS_LANES void clear(const std::uint32_t* sent, std::int64_t count) const {
    for (int i = 0; i < kArrays; ++i) {
      if (i >= kResidual && !Algorithm::kClears[i - kResidual]) continue;
      float* const state = array(i);
      for (std::int64_t k = 0; k < count; ++k) state[sent[k]] = 0;
    }
  }

  /// Writes the header, and zeros in unused room.
  HIPRESS_LANES void finish(const SparsifierHeader& start) const {
    __builtin_memcpy(item_.message, &start, sizeof start);
    const std::int64_t room = sparsifier_array_bytes(count_), used = 4 * std::int64_t{start.count};
    for (int part = 0; part < 2; ++part) {
      __builtin_memset(item_.message + sizeof start + part * room + used, 0,
                       static_cast<std::size_t>(room - used));
    }
  }

  const EncodeItem item_;
  const ValueRule rule_;
  const decltype(std::declval<const Algorithm&>().selection(0)) selection_;
  const std::int64_t count_;
  const SelectionPlan plan_;
  std::uint32_t* entries_ = nullptr;
  std::uint32_t threshold_ = 1;
  std::int64_t collected_ = 0;
};

template <class Algorithm, class F, bool kKept>
__attribute__((noinline)) void run_sparsifier(const Algorithm& algorithm, const EncodeItem& item) {
  SparsifierEncoder<Algorithm, F, kKept>(algorithm, item).run();
}

/// One message's entries, for decoding.
struct SparsifierEntries {
  bool non_finite = false;
  std::int64_t count = 0;
  const std::uint32_t* indices = nullptr;
  const float* values = nullptr;
};

/// Functions of a sparsifier's CompiledAlgorithm, with lanes F.
template <class Algorithm, class F>
struct HostSparsifierFunctions : BoundFunctions<Algorithm, F> {
  using BoundFunctions<Algorithm, F>::algorithm;

  static std::int64_t encoded_bytes(const BoundAlgorithm& bound, std::int64_t elements) {
    return sparsifier_message_bytes(elements, algorithm(bound).count(elements));
  }
  static void encode(const BoundAlgorithm& bound, const EncodeItem& item) {
    if (item.elements > kMaxSparsifierElements) {
      throw std::invalid_argument("a slice of 2^32 elements or more; cut it into partitions");
    }
    if (item.message_bytes != nullptr) *item.message_bytes = encoded_bytes(bound, item.elements);
    if (kSparsifierArrays < Algorithm >> 0 && item.state.data != nullptr) {
      run_sparsifier<Algorithm, F, true>(algorithm(bound), item);
    } else {
      run_sparsifier<Algorithm, F, false>(algorithm(bound), item);
    }
  }

  /// Locates a message's entries; their number is limited to the message's room, whatever the
  /// header says.
  static SparsifierEntries entries_of(const Algorithm& algorithm, const std::byte* message,
                                      std::int64_t elements) {
    SparsifierHeader start;
    __builtin_memcpy(&start, message, sizeof start);
    const std::byte* const arrays = message + sizeof start;
    const std::int64_t most = algorithm.count(elements);
    return {start.header.non_finite == 1, start.count < most ? start.count : most,
            reinterpret_cast<const std::uint32_t*>(arrays),
            reinterpret_cast<const float*>(arrays + sparsifier_array_bytes(most))};
  }

  /// Reads an index exactly once: a sender may change shared memory after the message was checked.
  static std::int64_t index_at(const SparsifierEntries& entries, std::int64_t k) {
    return __atomic_load_n(entries.indices + k, __ATOMIC_RELAXED);
  }

  /// True if the message, which has the right length, is a valid encoding of a slice of `elements`
  /// elements.
  static bool plausible(const Algorithm& algorithm, const std::byte* message,
                        std::int64_t elements) {
    SparsifierHeader start;
    __builtin_memcpy(&start, message, sizeof start);
    if (start.header.tag != Algorithm::kTag || start.header.planes != 0 ||
        start.header.non_finite > 1 || start.count > algorithm.count(elements) ||
        start.header.elements != static_cast<std::uint32_t>(elements)) {
      return false;
    }
    const SparsifierEntries entries = entries_of(algorithm, message, elements);
    std::int64_t before = -1;
    for (std::int64_t i = 0; i < entries.count; ++i) {
      const std::int64_t index = entries.indices[i];
      if (index <= before || index >= elements || !is_finite(entries.values[i])) return false;
      before = index;
    }
    return true;
  }

  static std::size_t decode(const BoundAlgorithm& bound, const DecodeItem& item) {
    const std::size_t messages = item.messages.size();
    const std::int64_t bytes = encoded_bytes(bound, item.elements);
    bool non_finite = false;
    for (std::size_t i = 0; i < messages; ++i) {
      if (item.elements > kMaxSparsifierElements || item.message_bytes[i] != bytes ||
          !plausible(algorithm(bound), item.messages[i], item.elements)) {
        return i;
      }
      non_finite =
          non_finite || entries_of(algorithm(bound), item.messages[i], item.elements).non_finite;
    }
    if (non_finite) {
      for (std::int64_t i = 0; i < item.elements; ++i) {
        store_value(item.values, item.type, i, not_a_number());
      }
      return messages;
    }
    const bool adds = item.mode == DecodeMode::kAdd;
    const bool divides = adds && (item.own_divisor != 1 || item.sum_divisor != 1);
    if (item.type == ValueType::kFloat32 && !divides) {
      auto* const values = static_cast<float*>(item.values);
      if (!adds) {
        __builtin_memset(values, 0, static_cast<std::size_t>(item.elements) * sizeof(float));
      }
      add_entries(bound, item, values, 0, item.elements);
    } else {
      write_in_fp32<F>(
          item.values, item.type, item.elements, adds ? Before::kThere : Before::kUnknown,
          [&](float* values, std::int64_t first, std::int64_t count)
              __attribute__((always_inline)) {
                if (!adds) {
                  __builtin_memset(values, 0, static_cast<std::size_t>(count) * sizeof(float));
                }
                if (adds) divide_all(values, count, item.own_divisor);
                add_entries(bound, item, values, first, count);
                if (adds) divide_all(values, count, item.sum_divisor);
              });
    }
    return messages;
  }

  /// Adds or stores the messages' entries for elements [first, first + count), the first of which
  /// is at `values`.
  static void add_entries(const BoundAlgorithm& bound, const DecodeItem& item, float* values,
                          std::int64_t first, std::int64_t count) {
    const bool adds = item.mode == DecodeMode::kAdd;
    for (std::size_t i = 0; i < item.messages.size(); ++i) {
      const SparsifierEntries entries =
          entries_of(algorithm(bound), item.messages[i], item.elements);
      std::int64_t k = first == 0 ? 0 : first_from(entries, first);
      for (; k < entries.count; ++k) {
        const std::int64_t index = index_at(entries, k);
        if (index >= first + count) break;
        if (index < first) continue;
        float& value = values[index - first];
        value = adds ? value + entries.values[k] : entries.values[k];
      }
    }
  }

  /// Position of the first entry whose index is at least `index`.
  static std::int64_t first_from(const SparsifierEntries& entries, std::int64_t index) {
    std::int64_t begin = 0, end = entries.count;
    while (begin < end) {
      const std::int64_t middle = (begin + end) / 2;
      if (index_at(entries, middle) < index) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    return begin;
  }

  static void divide_all(float* values, std::int64_t count, float by) {
    const Divisor divisor = Divisor::of(by);
    if (!divisor.divides) return;
    for (std::int64_t word = 0; word < words_of(count); ++word) {
      const int in_word = elements_in_word(count, word);
      Word<F> quotients = load_word<F>(values + word * kWordElements, in_word);
      for (F& part : quotients.part) part = divisor(part);
      store_word(values + word * kWordElements, quotients, in_word);
    }
  }

  static void settle(const BoundAlgorithm&, const State&, std::int64_t) {}
};

template <class Algorithm, class F>
constexpr CompiledAlgorithm host_sparsifier(const char* name, const DeclaredParameter* parameters,
                                            int count) {
  using Functions = HostSparsifierFunctions<Algorithm, F>;
  return {.name = name,
          .parameters = parameters,
          .parameter_count = count,
          .error_feedback = Algorithm::kErrorFeedback,
          .state_arrays = kSparsifierArrays<Algorithm>,
          .deferrable = true,
          .bind = Functions::bind,
          .encoded_bytes = Functions::encoded_bytes,
          .encode = Functions::encode,
          .decode = Functions::decode,
          .settle = Functions::settle,
          .planes_offset = 0,
          .planes = nullptr,
          .levels = nullptr,
          .cuda = {.kind = CudaKind::kSparsifier},
          .waiting_array = kScoreArray<Algorithm>};
}

}  // namespace hipress::kernels
