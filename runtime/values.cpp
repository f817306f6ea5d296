#include "runtime/values.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "kernels/codec/codec.hpp"

namespace hipress::runtime {
namespace {

/// Number of values that are cast at a time, in a *tile*. A tile is aligned for codecs, and stays
/// in the L1 cache between the cast and the copy.
constexpr std::size_t kTile = 4096;
struct alignas(64) Tile {
  std::byte codes[kTile * 2];
};

/// Casting codec of a 16-bit type; its message is an array of the numbers.
const kernels::Codec& codec_of(models::Dtype type) {
  static const std::unique_ptr<const kernels::Codec> fp16 = kernels::make_codec("fp16");
  static const std::unique_ptr<const kernels::Codec> bf16 = kernels::make_codec("bf16");
  return type == models::Dtype::kFloat16 ? *fp16 : *bf16;
}

/// True if all numbers are finite: no exponent has all bits set. `kExponent` is the exponent's
/// mask.
template <class Bits, Bits kExponent>
bool all_finite(const std::byte* numbers, std::size_t count) {
  const auto bits_of = [](const std::byte* at) {
    Bits bits;
    std::memcpy(&bits, at, sizeof bits);
    return static_cast<Bits>(bits & kExponent);
  };
  constexpr std::size_t kBlock = 64;  // constant, for vectorisation
  Bits most = 0;
  while (count >= kBlock) {
    for (std::size_t i = 0; i < kBlock; ++i) {
      most = std::max(most, bits_of(numbers + i * sizeof(Bits)));
    }
    numbers += kBlock * sizeof(Bits);
    count -= kBlock;
  }
  for (std::size_t i = 0; i < count; ++i) {
    most = std::max(most, bits_of(numbers + i * sizeof(Bits)));
  }
  return most < kExponent;
}

}  // namespace

void widen(const void* from, models::Dtype type, std::span<float> to) {
  if (type == models::Dtype::kFloat32) {
    std::memcpy(to.data(), from, to.size_bytes());
    return;
  }
  const kernels::Codec& cast = codec_of(type);
  const auto* codes = static_cast<const std::byte*>(from);
  Tile tile;
  const std::byte* const message = tile.codes;
  while (!to.empty()) {
    const std::size_t count = std::min(kTile, to.size());
    const std::int64_t bytes = cast.encoded_bytes(static_cast<std::int64_t>(count));
    tile.codes[bytes - 1] = tile.codes[bytes - 2] = std::byte{0};  // padding for an odd count
    std::memcpy(tile.codes, codes, 2 * count);
    const kernels::DecodeItem item{.messages = {&message, 1},
                                   .message_bytes = {&bytes, 1},
                                   .elements = static_cast<std::int64_t>(count),
                                   .values = to.data()};
    cast.decode({&item, 1});
    to = to.subspan(count);
    codes += 2 * count;
  }
}

bool narrow(std::span<const float> from, models::Dtype type, void* to) {
  auto* codes = static_cast<std::byte*>(to);
  bool finite = true;
  if (type == models::Dtype::kFloat32) {
    while (!from.empty()) {  // per tile, which stays in the L1 cache
      const std::span<const float> tile = from.first(std::min(kTile, from.size()));
      std::memcpy(codes, tile.data(), tile.size_bytes());
      finite &= all_finite<std::uint32_t, 0x7f800000u>(codes, tile.size());
      codes += tile.size_bytes();
      from = from.subspan(tile.size());
    }
    return finite;
  }
  const bool is_half = type == models::Dtype::kFloat16;
  const kernels::Codec& cast = codec_of(type);
  Tile tile;
  while (!from.empty()) {
    const std::size_t count = std::min(kTile, from.size());
    const kernels::EncodeItem item{
        .values = from.data(), .elements = static_cast<std::int64_t>(count), .message = tile.codes};
    cast.encode({&item, 1});
    std::memcpy(codes, tile.codes, 2 * count);
    finite &= is_half ? all_finite<std::uint16_t, 0x7c00>(codes, count)
                      : all_finite<std::uint16_t, 0x7f80>(codes, count);
    from = from.subspan(count);
    codes += 2 * count;
  }
  return finite;
}

}  // namespace hipress::runtime
