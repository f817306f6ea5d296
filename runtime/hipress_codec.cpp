// Implements the codecs of hipress.h, for programs that send messages themselves.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/codec/algorithm_list.hpp"
#include "kernels/codec/codec.hpp"
#include "kernels/codec/state_store.hpp"
#include "runtime/c_interface.hpp"
#include "runtime/hipress.h"

using namespace hipress;
using runtime::guarded;
using runtime::list_of;
using runtime::refuse_null;
using runtime::required;

struct hipress_codec {
  std::string algorithm;
  std::unique_ptr<kernels::Codec> codec;
  std::uint64_t seed = 0;
  kernels::StateStore states;
};

namespace {

kernels::ValueType value_type(const hipress_type& type) {
  switch (runtime::dtype_of(type)) {
    case models::Dtype::kFloat16:
      return kernels::ValueType::kFloat16;
    case models::Dtype::kBfloat16:
      return kernels::ValueType::kBfloat16;
    default:
      return kernels::ValueType::kFloat32;
  }
}

hipress_type type_of(kernels::ValueType type) {
  if (type == kernels::ValueType::kFloat16) return HIPRESS_FLOAT16;
  return type == kernels::ValueType::kBfloat16 ? HIPRESS_BFLOAT16 : HIPRESS_FLOAT32;
}

float divisor_of(float given) {
  if (std::isfinite(given)) return given == 0 ? 1.0f : given;
  throw std::invalid_argument(fmt::format("divisor is {}; give a number, or 0 for none", given));
}

bool keeps(const kernels::Codec& codec) {
  return codec.traits().error_feedback && codec.traits().state_arrays > 0;
}

std::unique_ptr<hipress_codec> made(const std::string& algorithm, std::uint64_t seed) {
  if (kernels::program_file(algorithm)) {
    throw std::invalid_argument(
        fmt::format("algorithm {} is a program, which this call does not run; name one of {}",
                    algorithm, kernels::algorithm_names()));
  }
  auto made = std::make_unique<hipress_codec>();
  made->algorithm = algorithm;
  made->codec = kernels::make_codec(algorithm);
  made->seed = seed;
  if (made->codec->traits().additive || made->codec->traits().stages > 1) {
    throw std::invalid_argument(
        fmt::format("{} compresses whole gradients, between which nothing is decoded; take another "
                    "algorithm for slices, such as int8block",
                    algorithm));
  }
  return made;
}

/// Upper bound of a message's bytes.
std::int64_t room_for(const kernels::Codec& codec, std::int64_t elements) {
  if (elements >= 0 && elements <= models::kMaxElements) return codec.encoded_bytes(elements);
  throw std::invalid_argument(
      fmt::format("a message has from 0 to {} elements, got {}", models::kMaxElements, elements));
}

/// Throws std::invalid_argument unless the values are within their gradient: an index that wraps
/// around would repeat random draws.
void require_slice(const hipress_encode& encode) {
  const std::int64_t all =
      encode.state_elements == 0 ? models::kMaxElements : encode.state_elements;
  if (encode.first_element >= 0 && all <= models::kMaxElements && encode.elements <= all &&
      encode.first_element <= all - encode.elements) {
    return;
  }
  throw std::invalid_argument(
      fmt::format("{} elements from first_element {} on do not lie within a gradient of {}, of at "
                  "most {} elements",
                  encode.elements, encode.first_element, all, models::kMaxElements));
}

/// Codec's view of an encode. The residual is looked up after all encodes of the call are checked.
kernels::EncodeItem item_of(const hipress_codec& codec, hipress_encode& encode) {
  const std::int64_t room = room_for(*codec.codec, encode.elements);
  require_slice(encode);
  if (encode.capacity < room) {
    throw std::invalid_argument(
        fmt::format("a message of {} elements by {} takes {} bytes, and there is room for {}",
                    encode.elements, codec.algorithm, room, encode.capacity));
  }
  if (encode.elements > 0) {
    refuse_null(encode.values, "values");
    refuse_null(encode.message, "message");
  }
  return {.values = encode.values,
          .type = value_type(encode.type),
          .elements = encode.elements,
          .divisor = divisor_of(encode.divisor),
          .state = {},
          .message = static_cast<std::byte*>(encode.message),
          .key = {.seed = codec.seed,
                  .step = encode.step,
                  .node = encode.node,
                  .gradient = encode.gradient,
                  .role = encode.role,
                  .first_element = encode.first_element},
          .message_bytes = &encode.message_bytes};
}

/// Throws std::invalid_argument if two encodes of one call share elements of a residual: looking up
/// a slice's residual invalidates overlapping ones.
void require_apart(std::span<const hipress_encode> encodes) {
  std::vector<const hipress_encode*> sorted;
  for (const hipress_encode& one : encodes) {
    if (one.state_elements != 0 && one.elements > 0) sorted.push_back(&one);
  }
  const auto place = [](const hipress_encode* one) {
    return std::tuple(one->gradient, one->role, one->first_element);
  };
  std::ranges::sort(sorted, {}, place);
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const hipress_encode &before = *sorted[i - 1], &one = *sorted[i];
    if (before.gradient != one.gradient || before.role != one.role) continue;
    const std::uint64_t apart = static_cast<std::uint64_t>(one.first_element) -
                                static_cast<std::uint64_t>(before.first_element);
    if (apart >= static_cast<std::uint64_t>(before.elements)) continue;
    throw std::invalid_argument(
        fmt::format("two encodes share the residual of element {} of gradient {}, role {}; make "
                    "them in two calls",
                    one.first_element, one.gradient, one.role));
  }
}

void encode(hipress_codec& codec, std::span<hipress_encode> encodes) {
  std::vector<kernels::EncodeItem> items;
  for (hipress_encode& one : encodes) items.push_back(item_of(codec, one));
  if (keeps(*codec.codec)) require_apart(encodes);
  for (std::size_t i = 0; i < items.size(); ++i) {
    hipress_encode& one = encodes[i];
    one.message_bytes = codec.codec->encoded_bytes(one.elements);
    if (one.state_elements == 0 || !keeps(*codec.codec)) continue;
    items[i].state = codec.states.slice_of(*codec.codec, fmt::format("{}", one.gradient), one.role,
                                           one.state_elements, one.first_element, one.elements);
  }
  codec.codec->encode(items);
}

/// Checks a decode's arguments and returns its messages. Everything but the messages' content is
/// checked here, before the call decodes anything.
std::vector<const std::byte*> messages_of(const kernels::Codec& codec, const hipress_decode& one) {
  required(one.messages, "messages");
  required(one.message_bytes, "message_bytes");
  if (one.count == 0) throw std::invalid_argument("there are no messages to decode");
  const std::int64_t most = room_for(codec, one.elements);
  if (one.elements > 0) refuse_null(one.values, "values");
  std::vector<const std::byte*> messages;
  for (std::size_t i = 0; i < one.count; ++i) {
    const std::int64_t bytes = one.message_bytes[i];
    if (bytes < 0 || bytes > most || (!codec.traits().varies && bytes != most)) {
      throw std::runtime_error(fmt::format("message {} of {} elements has {} bytes, expected {}{}",
                                           i, one.elements, bytes,
                                           codec.traits().varies ? "at most " : "", most));
    }
    if (bytes > 0) refuse_null(one.messages[i], "a message");
    messages.push_back(static_cast<const std::byte*>(one.messages[i]));
  }
  return messages;
}

void decode(const hipress_codec& codec, std::span<const hipress_decode> decodes) {
  std::vector<kernels::DecodeItem> items;
  std::vector<std::vector<const std::byte*>> messages;
  for (const hipress_decode& one : decodes) {
    const auto& list = messages.emplace_back(messages_of(*codec.codec, one));
    const bool alone = one.count == 1 && divisor_of(one.divisor) == 1;
    items.push_back({.messages = list,
                     .message_bytes = {one.message_bytes, one.count},
                     .elements = one.elements,
                     .values = one.values,
                     .type = value_type(one.type),
                     .mode = alone ? kernels::DecodeMode::kOverwrite : kernels::DecodeMode::kAdd,
                     .sum_divisor = divisor_of(one.divisor)});
  }
  codec.codec->check_lengths(items);
  for (const kernels::DecodeItem& item : items) {
    if (item.mode == kernels::DecodeMode::kOverwrite || item.elements == 0) continue;
    std::fill_n(static_cast<std::byte*>(item.values),
                item.elements * kernels::bytes_per_value(item.type), std::byte{});
  }
  codec.codec->decode(items);
}

}  // namespace

extern "C" {

hipress_status hipress_codec_open(const char* algorithm, uint64_t seed, hipress_codec** codec) {
  if (codec != nullptr) *codec = nullptr;
  return guarded(
      [&] { required(codec, "codec") = made(&required(algorithm, "algorithm"), seed).release(); });
}

hipress_status hipress_codec_describe(const hipress_codec* codec, hipress_codec_traits* traits) {
  return guarded([&] {
    const kernels::CodecTraits& known = required(codec, "codec").codec->traits();
    required(traits, "traits") = {.varies = known.varies ? 1 : 0,
                                  .keeps = keeps(*codec->codec) ? 1 : 0,
                                  .half_precision = known.half_precision ? 1 : 0,
                                  .message_type = type_of(known.message_values)};
  });
}

int64_t hipress_codec_bytes(const hipress_codec* codec, int64_t elements) {
  std::int64_t bytes = -1;
  guarded([&] { bytes = room_for(*required(codec, "codec").codec, elements); });
  return bytes;
}

hipress_status hipress_codec_encode(hipress_codec* codec, hipress_encode* encodes, size_t count) {
  return guarded([&] { encode(required(codec, "codec"), list_of(encodes, count, "encodes")); });
}

hipress_status hipress_codec_decode(const hipress_codec* codec, const hipress_decode* decodes,
                                    size_t count) {
  return guarded([&] { decode(required(codec, "codec"), list_of(decodes, count, "decodes")); });
}

hipress_status hipress_codec_save(hipress_codec* codec, const char* path) {
  return guarded([&] { required(codec, "codec").states.save(&required(path, "path")); });
}

hipress_status hipress_codec_load(hipress_codec* codec, const char* path) {
  return guarded([&] { required(codec, "codec").states.load(&required(path, "path")); });
}

void hipress_codec_close(hipress_codec* codec) { delete codec; }

}  // extern "C"
