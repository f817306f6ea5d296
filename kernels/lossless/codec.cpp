#include "kernels/lossless/codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "kernels/codec/item_checks.hpp"
#include "kernels/frames/typed_values.hpp"
#include "kernels/lossless/format.hpp"
#include "kernels/lossless/huffman.hpp"

namespace hipress::kernels::lossless {

namespace {

// ---- splitting values into exponents and the rest, and joining them, in loops that vectorise ----

template <class T>
T load(const std::uint8_t* from, std::int64_t i) {
  T value;
  std::memcpy(&value, from + i * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}
template <class T>
void store(std::uint8_t* to, std::int64_t i, T value) {
  std::memcpy(to + i * static_cast<std::int64_t>(sizeof value), &value, sizeof value);
}

void take_exponents(ValueType type, const std::uint8_t* __restrict values, std::int64_t count,
                    std::uint8_t* __restrict exponents) {
  using enum ValueType;
  if (type == kFloat32) {
    for (std::int64_t i = 0; i < count; ++i) {
      exponents[i] = exponent_of(kFloat32, load<std::uint32_t>(values, i));
    }
  } else if (type == kBfloat16) {
    for (std::int64_t i = 0; i < count; ++i) {
      exponents[i] = exponent_of(kBfloat16, load<std::uint16_t>(values, i));
    }
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      exponents[i] = exponent_of(kFloat16, load<std::uint16_t>(values, i));
    }
  }
}

void take_rest(ValueType type, const std::uint8_t* __restrict values, std::int64_t count,
               std::uint8_t* __restrict rest) {
  using enum ValueType;
  if (type == kFloat32) {
    for (std::int64_t i = 0; i < count; ++i) {
      store<std::uint16_t>(rest, i, static_cast<std::uint16_t>(load<std::uint32_t>(values, i)));
    }
    std::uint8_t* __restrict const upper = rest + 2 * count;
    for (std::int64_t i = 0; i < count; ++i) {
      upper[i] = signed_rest_of(kFloat32, load<std::uint32_t>(values, i));
    }
  } else if (type == kBfloat16) {
    for (std::int64_t i = 0; i < count; ++i) {
      rest[i] = signed_rest_of(kBfloat16, load<std::uint16_t>(values, i));
    }
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      rest[i] = signed_rest_of(kFloat16, load<std::uint16_t>(values, i));
    }
  }
}

void put_together(ValueType type, const std::uint8_t* __restrict exponents,
                  const std::uint8_t* __restrict rest, std::int64_t count,
                  std::uint8_t* __restrict values) {
  using enum ValueType;
  if (type == kFloat32) {
    const std::uint8_t* __restrict const upper = rest + 2 * count;
    for (std::int64_t i = 0; i < count; ++i) {
      store<std::uint32_t>(values, i,
                           float_of(exponents[i], upper[i], load<std::uint16_t>(rest, i)));
    }
  } else if (type == kBfloat16) {
    for (std::int64_t i = 0; i < count; ++i) {
      store<std::uint16_t>(values, i, half_of(kBfloat16, exponents[i], rest[i]));
    }
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      store<std::uint16_t>(values, i, half_of(kFloat16, exponents[i], rest[i]));
    }
  }
}

// ---- narrowing fp32 numbers that are exact in 16 bits, and widening them ----

/// True if all fp32 numbers are exact in type `narrow`. Stops at the first block of 64 in which one
/// is not.
bool are_all(ValueType narrow, const std::uint8_t* values, std::int64_t count) {
  constexpr std::int64_t kAtOnce = 64;
  for (std::int64_t first = 0; first < count; first += kAtOnce) {
    const std::int64_t end = std::min(first + kAtOnce, count);
    std::uint32_t lost = 0;
    for (std::int64_t i = first; i < end; ++i) {
      std::uint16_t code;
      store_value(&code, narrow, 0, load<float>(values, i));
      lost |= load<std::uint32_t>(values, i) ^
              std::bit_cast<std::uint32_t>(load_value(&code, narrow, 0));
    }
    if (lost != 0) return false;
  }
  return true;
}

void narrow_all(ValueType narrow, const std::uint8_t* values, std::int64_t count,
                std::uint16_t* codes) {
  for (std::int64_t i = 0; i < count; ++i) store_value(codes, narrow, i, load<float>(values, i));
}

void widen_all(ValueType narrow, const std::uint16_t* codes, std::int64_t count,
               std::uint8_t* values) {
  for (std::int64_t i = 0; i < count; ++i) store<float>(values, i, load_value(codes, narrow, i));
}

// ---- chunks ----

/// Scratch memory for coding chunks of up to `most` values.
struct Room {
  explicit Room(std::int64_t most) : exponents(static_cast<std::size_t>(most + kSlack)) {}

  std::vector<std::uint8_t> exponents;
  /// Fp32 numbers narrowed to 16 bits; allocated when first needed.
  std::vector<std::uint16_t> codes;

  std::uint16_t* codes_of(std::int64_t count) {
    codes.resize(std::max(codes.size(), static_cast<std::size_t>(count)));
    return codes.data();
  }
};

/// Writes a coded chunk and returns its size in bytes; 0 if it would not shrink.
std::int64_t encode_chunk(ValueType type, Form form, const std::uint8_t* values, std::int64_t count,
                          std::uint8_t* exponents, std::uint8_t* to) {
  std::uint8_t* const begin = to;
  const std::int64_t rest = count * rest_bytes(type);
  take_exponents(type, values, count, exponents);
  const Counts counts = count_symbols(exponents, count);
  const CodeLengths lengths = code_lengths(counts);
  if (would_not_shrink(type, count, most_bytes(counts, lengths))) return 0;
  to += sizeof(ChunkStart);
  for (int symbol = 0; symbol < kSymbols; symbol += 2) {
    *to++ = static_cast<std::uint8_t>(lengths[symbol] | lengths[symbol + 1] << 4);
  }
  std::uint8_t* const sizes = to;
  to += kSizesBytes;
  take_rest(type, values, count, to);
  to += rest;
  const Streams streams = encode_symbols(exponents, count, lengths, to);
  std::memcpy(sizes, streams.bytes.data(), static_cast<std::size_t>(kSizesBytes));
  to += streams.total();
  const std::int64_t bytes = up_to_4(to - begin + kSlack);
  std::memset(to, 0, static_cast<std::size_t>(begin + bytes - to));
  const ChunkStart start = {static_cast<std::uint32_t>(bytes - std::int64_t{sizeof start}), form};
  std::memcpy(begin, &start, sizeof start);
  return bytes;
}

/// Writes a chunk in the first form that shrinks it (narrowed to bf16, to fp16, or coded as it is),
/// otherwise raw. Returns its size in bytes.
std::int64_t write_chunk(ValueType type, const std::uint8_t* values, std::int64_t count, Room& room,
                         std::uint8_t* to) {
  const auto narrowed = [&](ValueType narrow, Form form) -> std::int64_t {
    if (type != ValueType::kFloat32 || !are_all(narrow, values, count)) return 0;
    std::uint16_t* const codes = room.codes_of(count);
    narrow_all(narrow, values, count, codes);
    return encode_chunk(narrow, form, reinterpret_cast<const std::uint8_t*>(codes), count,
                        room.exponents.data(), to);
  };
  std::int64_t bytes = narrowed(ValueType::kBfloat16, Form::kCodedAsBfloat16);
  if (bytes == 0) bytes = narrowed(ValueType::kFloat16, Form::kCodedAsFloat16);
  if (bytes == 0) {
    bytes = encode_chunk(type, Form::kCoded, values, count, room.exponents.data(), to);
  }
  if (bytes > 0) return bytes;
  const std::int64_t raw = count * bytes_per_value(type);
  const ChunkStart start = {static_cast<std::uint32_t>(up_to_4(raw)), Form::kRaw};
  std::memcpy(to, &start, sizeof start);
  to += sizeof start;
  std::memcpy(to, values, static_cast<std::size_t>(raw));
  std::memset(to + raw, 0, static_cast<std::size_t>(up_to_4(raw) - raw));
  return std::int64_t{sizeof start} + up_to_4(raw);
}

/// Decodes a coded chunk of `bytes` bytes; false if it is damaged. `exponents` needs room for
/// `count` + kSlack bytes.
bool decode_chunk(ValueType type, const std::uint8_t* from, std::int64_t bytes, std::int64_t count,
                  std::uint8_t* exponents, std::uint8_t* values) {
  const std::int64_t fixed = bytes_before_streams(type, count);
  if (bytes < fixed + kSlack) return false;
  CodeLengths lengths;
  for (int symbol = 0; symbol < kSymbols; symbol += 2) {
    lengths[symbol] = from[symbol / 2] & 15;
    lengths[symbol + 1] = from[symbol / 2] >> 4;
  }
  Streams streams;
  std::memcpy(streams.bytes.data(), from + kLengthsBytes, static_cast<std::size_t>(kSizesBytes));
  if (!is_complete(lengths) || up_to_4(fixed + streams.total() + kSlack) != bytes) return false;
  if (!decode_symbols(from + fixed, streams, lengths, exponents, count)) return false;
  put_together(type, exponents, from + kLengthsBytes + kSizesBytes, count, values);
  return true;
}

/// Sequential reader of a message's chunks.
class Reading {
 public:
  Reading(const std::byte* message, const Start& start)
      : at_(reinterpret_cast<const std::uint8_t*>(message) + sizeof start),
        end_(reinterpret_cast<const std::uint8_t*>(message) + start.bytes),
        type_(start.type),
        room_(chunk_elements(start.type)) {}

  ValueType type() const { return type_; }
  bool at_end() const { return at_ == end_; }

  /// Decodes the next chunk, of `count` values; false if it is damaged.
  bool next(std::int64_t count, std::uint8_t* values) {
    ChunkStart start;
    if (end_ - at_ < static_cast<std::int64_t>(sizeof start)) return false;
    std::memcpy(&start, at_, sizeof start);
    at_ += sizeof start;
    if (start.bytes % 4 != 0 || start.bytes > end_ - at_) return false;
    const std::uint8_t* const from = at_;
    at_ += start.bytes;
    if (start.form != Form::kRaw) return decode(start, from, count, values);
    const std::int64_t raw = count * bytes_per_value(type_);
    if (start.bytes != up_to_4(raw)) return false;
    std::memcpy(values, from, static_cast<std::size_t>(raw));
    return true;
  }

 private:
  bool decode(const ChunkStart& start, const std::uint8_t* from, std::int64_t count,
              std::uint8_t* values) {
    if (!is_known(start.form, type_)) return false;
    const ValueType narrow = coded_type(start.form, type_);
    if (narrow == type_) {
      return decode_chunk(type_, from, start.bytes, count, room_.exponents.data(), values);
    }
    std::uint16_t* const codes = room_.codes_of(count);
    if (!decode_chunk(narrow, from, start.bytes, count, room_.exponents.data(),
                      reinterpret_cast<std::uint8_t*>(codes))) {
      return false;
    }
    widen_all(narrow, codes, count, values);
    return true;
  }

  const std::uint8_t* at_;
  const std::uint8_t* end_;
  ValueType type_;
  Room room_;
};

// ---- slices ----

class LosslessCodec : public Codec {
 public:
  const CodecTraits& traits() const override {
    static const CodecTraits kTraits{.varies = true};
    return kTraits;
  }

  std::int64_t encoded_bytes(std::int64_t elements) const override {
    return most_bytes_of(elements);
  }

  void encode(std::span<const EncodeItem> items, void* /*stream*/) const override {
    check_encodes(items);
    for (const EncodeItem& item : items) {
      const std::int64_t bytes = item.elements > 0 ? encode_slice(item) : 0;
      if (item.message_bytes != nullptr) *item.message_bytes = bytes;
    }
  }

  void decode(std::span<const DecodeItem> items, void* /*stream*/) const override {
    check_decodes(items, "lossless");
    for (const DecodeItem& item : items) {
      std::vector<Reading> messages;
      for (std::size_t i = 0; i < item.messages.size(); ++i) {
        if (const Start start = start_of(item, i); item.elements > 0) {
          messages.emplace_back(item.messages[i], start);
        }
      }
      if (item.elements > 0) decode_slice(item, messages);
    }
  }

  void check_lengths(std::span<const DecodeItem> items) const override {
    check_decodes(items, "lossless");
    for (const DecodeItem& item : items) {
      for (std::size_t i = 0; i < item.messages.size(); ++i) start_of(item, i);
    }
  }

 private:
  static std::int64_t encode_slice(const EncodeItem& item) {
    const bool divides = item.divisor != 1;
    const ValueType type = divides ? ValueType::kFloat32 : item.type;
    const std::int64_t most = std::min(chunk_elements(type), item.elements);
    Room room(most);
    std::vector<float> divided(static_cast<std::size_t>(divides ? most : 0));
    auto* const begin = reinterpret_cast<std::uint8_t*>(item.message);
    std::uint8_t* to = begin + sizeof(Start);
    for (std::int64_t first = 0; first < item.elements; first += most) {
      const std::int64_t count = std::min(most, item.elements - first);
      const auto* values =
          static_cast<const std::uint8_t*>(item.values) + first * bytes_per_value(item.type);
      if (divides) {
        const Divisor divisor = Divisor::of(item.divisor);
        for (std::int64_t i = 0; i < count; ++i) {
          divided[static_cast<std::size_t>(i)] =
              divisor(load_value(item.values, item.type, first + i));
        }
        values = reinterpret_cast<const std::uint8_t*>(divided.data());
      }
      to += write_chunk(type, values, count, room, to);
    }
    Start start;
    start.elements = static_cast<std::uint32_t>(item.elements);
    start.type = type;
    start.bytes = to - begin;
    std::memcpy(begin, &start, sizeof start);
    return start.bytes;
  }

  /// Reads and checks the start of a message. The message must have the stated length, or the upper
  /// bound that a transport of fixed-size messages delivers.
  static Start start_of(const DecodeItem& item, std::size_t message) {
    const std::int64_t bytes = item.message_bytes[message];
    const auto refuse_length = [&](std::int64_t expected) {
      throw std::runtime_error(
          fmt::format("lossless: message {} of a slice of {} elements has {} bytes, expected {}",
                      message, item.elements, bytes, expected));
    };
    Start start;
    if (item.elements == 0) {
      if (bytes != 0) refuse_length(0);
      return start;
    }
    if (bytes < kStartBytes) refuse_length(kStartBytes);
    std::memcpy(&start, item.messages[message], sizeof start);
    if (!is_start(start, item.elements)) refuse(item, message);
    if (!has_length(start, item.elements, bytes)) {
      refuse_length(std::max(start.bytes, kStartBytes));
    }
    return start;
  }

  [[noreturn]] static void refuse(const DecodeItem& item, std::size_t message) {
    throw std::runtime_error(
        fmt::format("lossless: damaged message: message {} does not fit a slice of {} elements",
                    message, item.elements));
  }

  static void decode_slice(const DecodeItem& item, std::vector<Reading>& messages) {
    const bool overwrites = item.mode == DecodeMode::kOverwrite;
    if (overwrites && messages[0].type() == item.type) {
      decode_in_place(item, messages[0]);
    } else {
      decode_in_fp32(item, messages);
    }
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (!messages[i].at_end()) refuse(item, i);
    }
  }

  static void decode_in_place(const DecodeItem& item, Reading& message) {
    const std::int64_t most = chunk_elements(item.type);
    for (std::int64_t first = 0; first < item.elements; first += most) {
      auto* const values =
          static_cast<std::uint8_t*>(item.values) + first * bytes_per_value(item.type);
      if (!message.next(std::min(most, item.elements - first), values)) refuse(item, 0);
    }
  }

  /// Decodes through fp32, in parts of as many elements as two fp32 chunks or one 16-bit chunk.
  static void decode_in_fp32(const DecodeItem& item, std::vector<Reading>& messages) {
    const std::int64_t most = std::min(2 * kFloatsOfChunk, item.elements);
    std::vector<float> sums(static_cast<std::size_t>(most)), read(sums.size());
    std::vector<std::uint16_t> halves(sums.size());
    const Divisor own = Divisor::of(item.own_divisor), sum = Divisor::of(item.sum_divisor);
    const bool adds = item.mode == DecodeMode::kAdd;
    for (std::int64_t first = 0; first < item.elements; first += most) {
      const std::int64_t count = std::min(most, item.elements - first);
      for (std::int64_t i = 0; adds && i < count; ++i) {
        sums[static_cast<std::size_t>(i)] = own(load_value(item.values, item.type, first + i));
      }
      for (std::size_t m = 0; m < messages.size(); ++m) {
        if (!read_part(messages[m], count, read.data(), halves.data())) refuse(item, m);
        for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
          sums[i] = adds ? sums[i] + read[i] : read[i];
        }
      }
      for (std::int64_t i = 0; i < count; ++i) {
        const float value = sums[static_cast<std::size_t>(i)];
        store_value(item.values, item.type, first + i, adds ? sum(value) : value);
      }
    }
  }

  static bool read_part(Reading& message, std::int64_t count, float* to, std::uint16_t* halves) {
    if (message.type() == ValueType::kFloat32) {
      for (std::int64_t first = 0; first < count; first += kFloatsOfChunk) {
        const std::int64_t some = std::min(kFloatsOfChunk, count - first);
        if (!message.next(some, reinterpret_cast<std::uint8_t*>(to + first))) return false;
      }
      return true;
    }
    if (!message.next(count, reinterpret_cast<std::uint8_t*>(halves))) return false;
    for (std::int64_t i = 0; i < count; ++i) to[i] = load_value(halves, message.type(), i);
    return true;
  }
};

}  // namespace

std::unique_ptr<Codec> make_codec() { return std::make_unique<LosslessCodec>(); }

}  // namespace hipress::kernels::lossless
