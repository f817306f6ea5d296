#include "kernels/sparse/packed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernels/codec/item_checks.hpp"
#include "kernels/frames/sparsifier.hpp"
#include "kernels/frames/typed_values.hpp"

namespace hipress::kernels::sparse {

namespace {

std::uint64_t word_at(const std::byte* words, std::int64_t number) {
  std::uint64_t word;
  std::memcpy(&word, words + number * kWordBytes, sizeof word);
  return word;
}

/// Writes a bit stream, lowest bit of a word first.
class BitWriter {
 public:
  explicit BitWriter(std::byte* to) : to_(to) {}
  void put(std::uint64_t value, int bits) {
    word_ |= value << used_;
    used_ += bits;
    if (used_ < kWordBits) return;
    flush();
    used_ -= static_cast<int>(kWordBits);
    word_ = used_ > 0 ? value >> (bits - used_) : 0;
  }
  void finish() {
    if (used_ > 0) flush();
  }

 private:
  void flush() {
    std::memcpy(to_, &word_, sizeof word_);
    to_ += kWordBytes;
  }
  std::byte* to_;
  std::uint64_t word_ = 0;
  int used_ = 0;
};

/// Reads `bits` < 64 bits starting at bit `first`.
std::uint64_t bits_at(const std::byte* words, std::int64_t first, int bits) {
  if (bits == 0) return 0;
  const std::int64_t word = first / kWordBits;
  const int shift = static_cast<int>(first % kWordBits);
  std::uint64_t value = word_at(words, word) >> shift;
  if (shift + bits > kWordBits) value |= word_at(words, word + 1) << (kWordBits - shift);
  return value & ((std::uint64_t{1} << bits) - 1);
}

/// Memory for one plain message, aligned to 64 bytes.
class Scratch {
 public:
  explicit Scratch(std::int64_t bytes)
      : lines_(static_cast<std::size_t>((bytes + kLine - 1) / kLine)) {}
  std::byte* data() { return reinterpret_cast<std::byte*>(lines_.data()); }

 private:
  static constexpr std::int64_t kLine = 64;
  struct alignas(64) Line {
    std::byte bytes[kLine];
  };
  std::vector<Line> lines_;
};

class HostPackedCodec : public PackedCodec {
 public:
  using PackedCodec::PackedCodec;

  void encode(std::span<const EncodeItem> items, void* stream) const override {
    check_encodes(items);
    for (const EncodeItem& item : items) {
      const Layout parts = layout(item.elements);
      if (item.message_bytes != nullptr) *item.message_bytes = parts.end;
      if (item.elements == 0) continue;
      Scratch scratch(sparsifier_->encoded_bytes(item.elements));
      EncodeItem whole = item;
      whole.message = scratch.data();
      whole.message_bytes = nullptr;
      sparsifier_->encode({&whole, 1}, stream);
      pack(item, parts, scratch.data());
    }
  }

  void decode(std::span<const DecodeItem> items, void* stream) const override {
    check_decodes(items, "packed entries");
    for (const DecodeItem& item : items) {
      const Layout parts = layout(item.elements);
      const std::int64_t bytes = sparsifier_->encoded_bytes(item.elements);
      std::vector<Scratch> scratch;
      std::vector<const std::byte*> messages;
      const std::vector<std::int64_t> lengths(item.messages.size(), bytes);
      for (std::size_t i = 0; i < item.messages.size(); ++i) {
        if (item.message_bytes[i] != parts.end) {
          throw std::runtime_error(
              fmt::format("packed entries: message {} of a slice of {} elements has {} bytes, "
                          "expected {}",
                          i, item.elements, item.message_bytes[i], parts.end));
        }
        messages.push_back(scratch.emplace_back(bytes).data());
        if (item.elements > 0 && !unpack(item.messages[i], parts, scratch.back().data())) {
          throw std::runtime_error(fmt::format(
              "packed entries: damaged message: message {} does not fit a slice of {} elements", i,
              item.elements));
        }
      }
      DecodeItem whole = item;
      whole.messages = messages;
      whole.message_bytes = lengths;
      sparsifier_->decode({&whole, 1}, stream);
    }
  }

 private:
  void pack(const EncodeItem& item, const Layout& parts, const std::byte* from) const {
    SparsifierHeader start;
    std::memcpy(&start, from, sizeof start);
    const auto* const indices = reinterpret_cast<const std::uint32_t*>(from + kStartBytes);
    const auto* const values =
        reinterpret_cast<const float*>(from + kStartBytes + sparsifier_array_bytes(parts.entries));
    std::memset(item.message, 0, static_cast<std::size_t>(parts.end));
    BitWriter lower(item.message + kStartBytes);
    const std::uint32_t mask = (std::uint32_t{1} << parts.lower_bits) - 1;
    std::uint64_t word = 0;
    std::int64_t number = 0;
    const auto write_word = [&] {
      std::memcpy(item.message + parts.upper + number * kWordBytes, &word, sizeof word);
    };
    for (std::uint32_t i = 0; i < start.count; ++i) {
      if (parts.lower_bits > 0) lower.put(indices[i] & mask, parts.lower_bits);
      const std::int64_t bit = std::int64_t{indices[i] >> parts.lower_bits} + i;
      if (bit / kWordBits != number) {
        write_word();
        word = 0;
        number = bit / kWordBits;
      }
      word |= std::uint64_t{1} << (bit % kWordBits);
    }
    lower.finish();
    write_word();
    if (packing_ == Packing::kAll) {
      round_values(item, parts, {indices, start.count}, values);
    } else {
      std::memcpy(item.message + parts.values, values, std::size_t{start.count} * sizeof(float));
    }
    start.zero = static_cast<std::uint32_t>(packing_);
    std::memcpy(item.message, &start, sizeof start);
  }

  /// Stores values as fp16, clamped to the largest finite one. The rounding error is added to the
  /// state array.
  void round_values(const EncodeItem& item, const Layout& parts,
                    std::span<const std::uint32_t> indices, const float* values) const {
    float* const waits = waiting(item.state);
    std::byte* const to = item.message + parts.values;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const auto place = static_cast<std::int64_t>(i);
      store_value(to, ValueType::kFloat16, place, std::clamp(values[i], -kMaxFp16, kMaxFp16));
      if (waits == nullptr) continue;
      waits[indices[i]] += values[i] - load_value(to, ValueType::kFloat16, place);
    }
  }

  /// Returns false for a message that no encode makes. The sparsifier checks the unpacked indices
  /// and values.
  bool unpack(const std::byte* message, const Layout& parts, std::byte* to) const {
    SparsifierHeader start;
    std::memcpy(&start, message, sizeof start);
    if (start.zero != static_cast<std::uint32_t>(packing_) || start.count > parts.entries) {
      return false;
    }
    std::memset(to, 0, static_cast<std::size_t>(kStartBytes + 8 * parts.entries));
    auto* const indices = reinterpret_cast<std::uint32_t*>(to + kStartBytes);
    auto* const values =
        reinterpret_cast<float*>(to + kStartBytes + sparsifier_array_bytes(parts.entries));
    const std::int64_t words = parts.upper_words();
    std::uint32_t found = 0;
    for (std::int64_t number = 0; number < words; ++number) {
      std::uint64_t word = word_at(message + parts.upper, number);
      for (; word != 0; word &= word - 1) {
        if (found == start.count) return false;
        const std::int64_t upper = number * kWordBits + std::countr_zero(word) - found;
        const std::uint64_t index =
            (static_cast<std::uint64_t>(upper) << parts.lower_bits) |
            bits_at(message + kStartBytes, std::int64_t{found} * parts.lower_bits,
                    parts.lower_bits);
        if (index > UINT32_MAX) return false;
        indices[found++] = static_cast<std::uint32_t>(index);
      }
    }
    if (found != start.count) return false;
    const ValueType type = packing_ == Packing::kAll ? ValueType::kFloat16 : ValueType::kFloat32;
    for (std::uint32_t i = 0; i < found; ++i) {
      values[i] = load_value(message + parts.values, type, i);
    }
    start.zero = 0;
    std::memcpy(to, &start, sizeof start);
    return true;
  }
};

}  // namespace

std::unique_ptr<Codec> make_packed(std::unique_ptr<Codec> sparsifier, Packing packing,
                                   int waiting_array) {
  if (packing == Packing::kNone) return sparsifier;
  return std::make_unique<HostPackedCodec>(std::move(sparsifier), packing, waiting_array);
}

}  // namespace hipress::kernels::sparse
