#include "runtime/values.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

#include "kernels/codec/codec.hpp"

namespace hipress::runtime {
namespace {

/// Numbers that are cast at a time, in memory as aligned as codecs need it. They stay in the
/// nearest cache between the cast and the copy.
constexpr std::size_t kTile = 4096;
struct alignas(64) Tile {
  std::byte codes[kTile * 2];
};

/// The messages of the two casts are arrays of their codes.
const kernels::Codec& cast_of(models::Dtype type) {
  static const std::unique_ptr<const kernels::Codec> fp16 = kernels::make_codec("fp16");
  static const std::unique_ptr<const kernels::Codec> bf16 = kernels::make_codec("bf16");
  return type == models::Dtype::kFloat16 ? *fp16 : *bf16;
}

}  // namespace

void widen(const void* from, models::Dtype type, std::span<float> to) {
  if (type == models::Dtype::kFloat32) {
    std::memcpy(to.data(), from, to.size_bytes());
    return;
  }
  const kernels::Codec& cast = cast_of(type);
  const auto* codes = static_cast<const std::byte*>(from);
  Tile tile;
  const std::byte* const message = tile.codes;
  while (!to.empty()) {
    const std::size_t count = std::min(kTile, to.size());
    const std::int64_t bytes = cast.encoded_bytes(static_cast<std::int64_t>(count));
    tile.codes[bytes - 1] = tile.codes[bytes - 2] = std::byte{0};  // padding, of an odd count
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

void narrow(std::span<const float> from, models::Dtype type, void* to) {
  if (type == models::Dtype::kFloat32) {
    std::memcpy(to, from.data(), from.size_bytes());
    return;
  }
  const kernels::Codec& cast = cast_of(type);
  auto* codes = static_cast<std::byte*>(to);
  Tile tile;
  while (!from.empty()) {
    const std::size_t count = std::min(kTile, from.size());
    const kernels::EncodeItem item{
        .values = from.data(), .elements = static_cast<std::int64_t>(count), .message = tile.codes};
    cast.encode({&item, 1});
    std::memcpy(codes, tile.codes, 2 * count);
    from = from.subspan(count);
    codes += 2 * count;
  }
}

}  // namespace hipress::runtime
