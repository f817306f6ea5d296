#include "plans/lossless.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "plans/plan_builder.hpp"

namespace hipress::plans {
namespace {

constexpr std::size_t kValues = 2048;

/// Unit of message buffers: codecs require 16-byte alignment.
struct alignas(16) Line {
  std::byte bytes[16];
};
using Message = std::vector<Line>;

Message room_for(const kernels::Codec& codec, std::size_t values) {
  const std::int64_t bytes = codec.encoded_bytes(static_cast<std::int64_t>(values));
  return Message(static_cast<std::size_t>(bytes) / sizeof(Line) + 1);
}

std::vector<float> decoded(const kernels::Codec& codec, const Message& message, std::int64_t bytes,
                           std::size_t count) {
  std::vector<float> values(count);
  const std::byte* const first = message.front().bytes;
  const kernels::DecodeItem item = {.messages = {&first, 1},
                                    .message_bytes = {&bytes, 1},
                                    .elements = static_cast<std::int64_t>(count),
                                    .values = values.data()};
  codec.decode({&item, 1});
  return values;
}

std::vector<float> there_and_back(const kernels::Codec& codec, std::vector<float> values) {
  Message message = room_for(codec, values.size());
  const auto elements = static_cast<std::int64_t>(values.size());
  std::vector<float> state(values.size() * static_cast<std::size_t>(codec.traits().state_arrays));
  std::int64_t bytes = codec.encoded_bytes(elements);
  const kernels::EncodeItem item = {
      .values = values.data(),
      .elements = elements,
      .state = {.data = state.empty() ? nullptr : state.data(), .stride = elements},
      .message = message.front().bytes,
      .message_bytes = &bytes};
  codec.encode({&item, 1});
  return decoded(codec, message, bytes, values.size());
}

/// Random bits as numbers of the dtype, with 1 instead of each NaN.
std::vector<float> any_numbers(models::Dtype dtype) {
  std::mt19937 random;  // fixed seed
  std::vector<float> values(kValues);
  if (dtype == models::Dtype::kFloat32) {
    for (float& value : values) {
      value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    }
  } else {  // the message of a cast is an array of such numbers
    const auto cast = kernels::make_codec(std::string(cast_of(dtype)));
    Message message = room_for(*cast, kValues);
    for (Line& line : message) {
      for (std::byte& byte : line.bytes) byte = static_cast<std::byte>(random() & 0xff);
    }
    values = decoded(*cast, message, cast->encoded_bytes(kValues), kValues);
  }
  for (float& value : values) {
    if (std::isnan(value)) value = 1;
  }
  return values;
}

/// Numbers of the magnitude of weights: scaled sums of four uniform numbers.
std::vector<float> weights(models::Dtype dtype) {
  std::mt19937 random;
  std::vector<float> values(kValues);
  for (float& value : values) {
    float sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<float>(random() >> 8) * 0x1p-24f - 0.5f;
    value = sum * 0.02f;
  }
  if (dtype == models::Dtype::kFloat32) return values;
  return there_and_back(*kernels::make_codec(std::string(cast_of(dtype))), values);
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

bool keeps_every_bit(const kernels::Codec& codec, models::Dtype dtype) {
  if (codec.traits().additive) return false;
  for (const std::vector<float>& values : {weights(dtype), any_numbers(dtype)}) {
    if (!same_bits(there_and_back(codec, values), values)) return false;
  }
  return true;
}

std::optional<models::Dtype> kept_dtype(const kernels::Codec& codec) {
  using models::Dtype;
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBfloat16}) {
    if (keeps_every_bit(codec, dtype)) return dtype;
  }
  return std::nullopt;
}

}  // namespace hipress::plans
