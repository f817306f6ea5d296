#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/codec/codec.hpp"

namespace hipress::kernels::testing {

/// Encodes and decodes a slice; returns the decoded values.
inline std::vector<float> round_trip(const Codec& codec, const std::vector<float>& inputs,
                                     const DrawKey& key = {}, const State& state = {}) {
  struct alignas(16) Line {
    std::byte bytes[16];
  };
  const auto elements = static_cast<std::int64_t>(inputs.size());
  std::int64_t bytes = codec.encoded_bytes(elements);
  std::vector<Line> message(static_cast<std::size_t>(bytes) / sizeof(Line) + 1);
  EncodeItem item;
  item.values = inputs.data();
  item.elements = elements;
  item.state = state;
  item.message = message[0].bytes;
  item.key = key;
  item.message_bytes = &bytes;
  codec.encode({&item, 1});
  // Begin with NaNs, so that a missed element shows.
  std::vector<float> decoded(inputs.size(), std::nanf(""));
  const std::byte* const messages[] = {message[0].bytes};
  DecodeItem out;
  out.messages = messages;
  out.message_bytes = {&bytes, 1};
  out.elements = elements;
  out.values = decoded.data();
  codec.decode({&out, 1});
  return decoded;
}

}  // namespace hipress::kernels::testing
