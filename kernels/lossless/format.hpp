#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/codec/item.hpp"
#include "kernels/codec/lanes.hpp"
#include "kernels/lossless/code.hpp"

/// Layout of lossless messages (codec.hpp), for hosts and GPUs.
namespace hipress::kernels::lossless {

inline constexpr std::uint16_t kTag = 0x4c5a;
inline constexpr std::int64_t kChunkBytes = 256 << 10;
/// Elements of a chunk of fp32; a chunk of 16-bit numbers has twice as many.
inline constexpr std::int64_t kFloatsOfChunk = kChunkBytes / 4;
inline constexpr std::int64_t kLengthsBytes = kSymbols / 2;
inline constexpr std::int64_t kSizesBytes = kStreams * 4;

struct Start {
  std::uint32_t elements = 0;
  std::uint16_t tag = kTag;
  ValueType type = ValueType::kFloat32;
  std::uint8_t zero = 0;
  std::int64_t bytes = 0;
};
static_assert(sizeof(Start) == 16);
inline constexpr auto kStartBytes = static_cast<std::int64_t>(sizeof(Start));

/// Encoding of a chunk's values. The last two are for fp32 numbers that are all exact in the
/// narrower type.
enum class Form : std::uint32_t { kRaw, kCoded, kCodedAsBfloat16, kCodedAsFloat16 };

struct ChunkStart {
  std::uint32_t bytes = 0;
  Form form = Form::kRaw;
};
inline constexpr auto kChunkStartBytes = static_cast<std::int64_t>(sizeof(ChunkStart));

HIPRESS_LANES std::int64_t up_to_4(std::int64_t bytes) { return (bytes + 3) / 4 * 4; }

/// Size of a value in bytes, like bytes_per_value(), but also for device code.
HIPRESS_LANES std::int64_t number_bytes(ValueType type) {
  return type == ValueType::kFloat32 ? 4 : 2;
}

HIPRESS_LANES std::int64_t chunk_elements(ValueType type) {
  return kChunkBytes / number_bytes(type);
}

/// Bytes of a value that are not entropy-coded.
HIPRESS_LANES std::int64_t rest_bytes(ValueType type) { return number_bytes(type) - 1; }

/// Type of the coded numbers in a chunk of this form, in a message of `type`.
HIPRESS_LANES ValueType coded_type(Form form, ValueType type) {
  if (form == Form::kCodedAsBfloat16) return ValueType::kBfloat16;
  return form == Form::kCodedAsFloat16 ? ValueType::kFloat16 : type;
}

/// True if a message of `type` may have a chunk of this form.
HIPRESS_LANES bool is_known(Form form, ValueType type) {
  if (form == Form::kRaw || form == Form::kCoded) return true;
  const bool narrow = form == Form::kCodedAsBfloat16 || form == Form::kCodedAsFloat16;
  return narrow && type == ValueType::kFloat32;
}

/// Size of a coded chunk before its streams, without its ChunkStart.
HIPRESS_LANES std::int64_t bytes_before_streams(ValueType type, std::int64_t count) {
  return kLengthsBytes + kSizesBytes + count * rest_bytes(type);
}

/// True if a coded chunk of `count` values would not be smaller than a raw one. `most_bytes` is the
/// upper bound of its streams.
HIPRESS_LANES bool would_not_shrink(ValueType type, std::int64_t count, std::int64_t most_bytes) {
  return up_to_4(bytes_before_streams(type, count) + most_bytes + kSlack) >=
         count * number_bytes(type);
}

HIPRESS_LANES std::int64_t most_bytes_of(std::int64_t elements) {
  if (elements <= 0) return 0;
  const std::int64_t chunks = (elements - 1) / kFloatsOfChunk + 1;
  return kStartBytes + chunks * kChunkStartBytes + elements * 4;
}

/// True if `bytes`, the size of a received message, fits its start: it equals the stated length, or
/// the upper bound that a transport of fixed-size messages delivers.
HIPRESS_LANES bool has_length(const Start& start, std::int64_t elements, std::int64_t bytes) {
  const bool whole =
      start.bytes == bytes || (bytes == most_bytes_of(elements) && start.bytes <= bytes);
  return start.bytes >= kStartBytes && whole;
}

HIPRESS_LANES bool is_start(const Start& start, std::int64_t elements) {
  const bool known_type = start.type == ValueType::kFloat32 || start.type == ValueType::kFloat16 ||
                          start.type == ValueType::kBfloat16;
  return start.tag == kTag && start.zero == 0 && known_type &&
         start.elements == static_cast<std::uint32_t>(elements);
}

// ---- splitting a number's bits into exponent and rest, and joining them ----

HIPRESS_LANES std::uint8_t exponent_of(ValueType type, std::uint32_t bits) {
  const int shift = type == ValueType::kFloat32 ? 23 : type == ValueType::kBfloat16 ? 7 : 8;
  return static_cast<std::uint8_t>(bits >> shift);
}

/// Byte of the rest. For fp32 and bf16: sign and upper 7 bits of the mantissa; fp32's lower 16 bits
/// are sent beside it as they are. For fp16: the lower byte.
HIPRESS_LANES std::uint8_t signed_rest_of(ValueType type, std::uint32_t bits) {
  if (type == ValueType::kFloat16) return static_cast<std::uint8_t>(bits);
  if (type == ValueType::kFloat32) bits >>= 16;
  return static_cast<std::uint8_t>((bits & 0x7fu) | (bits >> 8 & 0x80u));
}

HIPRESS_LANES std::uint32_t float_of(std::uint32_t exponent, std::uint32_t signed_rest,
                                     std::uint32_t lower) {
  return (signed_rest & 0x80u) << 24 | exponent << 23 | (signed_rest & 0x7fu) << 16 | lower;
}

HIPRESS_LANES std::uint16_t half_of(ValueType type, std::uint32_t exponent, std::uint32_t rest) {
  if (type == ValueType::kFloat16) return static_cast<std::uint16_t>(exponent << 8 | rest);
  return static_cast<std::uint16_t>((rest & 0x80u) << 8 | exponent << 7 | (rest & 0x7fu));
}

}  // namespace hipress::kernels::lossless
