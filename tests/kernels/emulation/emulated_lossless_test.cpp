// Tests that the lossless codec's kernels, run on the CPU, give the host's messages and decoded
// values, bit for bit, for all forms, types and lengths.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/frames/typed_values.hpp"
#include "kernels/lossless/codec.hpp"
#include "tests/kernels/device_memory.hpp"
#include "tests/kernels/reference.hpp"

namespace hipress::kernels::lossless {
namespace {

using namespace kernels::testing;

constexpr ValueType kTypes[] = {ValueType::kFloat32, ValueType::kFloat16, ValueType::kBfloat16};
/// Elements of a chunk of fp32 numbers; a chunk of 16-bit numbers has twice as many.
constexpr std::int64_t kChunk = 65536;

void schedule(std::uint32_t seed) { emulation::Grid::instance().set_schedule(seed); }

/// Random bits: among them NaNs of all kinds, infinities and denormals.
Stored any_bits(ValueType type, std::int64_t elements) {
  std::mt19937 generator(5);
  std::vector<std::byte> bytes(static_cast<std::size_t>(elements * bytes_per_value(type)));
  for (std::byte& byte : bytes) byte = std::byte(generator() & 0xff);
  return {type, bytes};
}

/// fp32 numbers that are all exact in the type `narrow`.
std::vector<float> widened(ValueType narrow, std::int64_t elements, unsigned seed) {
  return loaded(stored(narrow, gaussian(elements, seed)));
}

/// Encodes on both devices, which must give the same message, and returns it.
std::vector<std::byte> same_message(const Stored& values, float divisor, int offset = 0) {
  auto message = encode(*make_codec(), values, divisor, nullptr, {});
  REQUIRE(encode_on_gpu(*make_cuda_codec(), values, divisor, nullptr, {}, offset) == message);
  return message;
}

void require_same_decode(const std::vector<std::byte>& message, std::int64_t elements,
                         ValueType type) {
  const Stored x = stored(type, std::vector<float>(static_cast<std::size_t>(elements), 1.0f));
  REQUIRE(decode_on_gpu(*make_cuda_codec(), {message}, x, DecodeMode::kOverwrite, 1, 1) ==
          decode(*make_codec(), message, elements, type));
}

TEST_CASE("emulated lossless messages are the host's, of every type and length", "[slow]") {
  std::uint32_t seed = 0;
  for (const ValueType type : kTypes) {
    for (const std::int64_t elements :
         {std::int64_t{1}, std::int64_t{2}, std::int64_t{5}, std::int64_t{1000}, kChunk - 1, kChunk,
          kChunk + 1, 2 * kChunk + 1}) {
      INFO(to_string(type) << ", " << elements << ", schedule " << seed);
      schedule(seed++ % 5);
      const std::vector<float> zeros(static_cast<std::size_t>(elements), -0.0f);
      for (const Stored& values :
           {stored(type, gaussian(elements, 3)), any_bits(type, elements), stored(type, zeros)}) {
        const auto message = same_message(values, 1, static_cast<int>(elements % 2));
        require_same_decode(message, elements, type);
        REQUIRE(decode(*make_codec(), message, elements, type) == values);
        same_message(values, 3);
      }
    }
  }
}

TEST_CASE("emulated lossless chunks have the forms that the host gives them") {
  std::vector<float> values = widened(ValueType::kBfloat16, kChunk, 1);
  const auto append = [&](const std::vector<float>& more) {
    values.insert(values.end(), more.begin(), more.end());
  };
  append(widened(ValueType::kFloat16, kChunk, 2));
  append(gaussian(kChunk, 3));
  append(widened(ValueType::kFloat16, kChunk, 4));
  values.back() = std::bit_cast<float>(0x7f800001u);  // a NaN that does not fit fp16
  append(widened(ValueType::kBfloat16, 100, 5));      // too few to shrink
  const Stored all = stored(ValueType::kFloat32, values);
  for (const std::uint32_t seed : {0, 1, 2}) {
    schedule(seed);
    const auto message = same_message(all, 1);
    for (const ValueType type : kTypes) require_same_decode(message, all.elements(), type);
  }
}

TEST_CASE("emulated lossless codes are cut off where the host's are") {
  // Fibonacci numbers as counts give the longest Huffman codes: 21 bits for 22 symbols, cut to 11.
  std::vector<float> values;
  for (int exponent = 0, a = 1, b = 1; exponent < 22; ++exponent, std::swap(a += b, b)) {
    values.insert(values.end(), static_cast<std::size_t>(a), std::ldexp(1.3f, exponent - 12));
  }
  std::shuffle(values.begin(), values.end(), std::mt19937(1));
  const Stored all = stored(ValueType::kFloat32, values);
  require_same_decode(same_message(all, 1), all.elements(), ValueType::kFloat32);
}

TEST_CASE("an emulated lossless message may be as long as the bound") {
  auto message = same_message(stored(ValueType::kBfloat16, gaussian(3000, 1)), 1);
  message.resize(static_cast<std::size_t>(make_codec()->encoded_bytes(3000)), std::byte(0xa5));
  for (const ValueType type : kTypes) require_same_decode(message, 3000, type);
}

TEST_CASE("emulated lossless messages of several types are added as the host adds them") {
  constexpr std::int64_t kElements = 2 * kChunk + 9001;
  std::vector<std::vector<std::byte>> messages;
  for (const ValueType type : kTypes) {
    messages.push_back(encode(*make_codec(), stored(type, gaussian(kElements, 2)), 1, nullptr, {}));
  }
  for (const ValueType type : kTypes) {
    INFO(to_string(type));
    schedule(static_cast<std::uint32_t>(type));
    const Stored x = stored(type, gaussian(kElements, 1));
    REQUIRE(decode_on_gpu(*make_cuda_codec(), messages, x, DecodeMode::kAdd, 3, 7) ==
            decode_add(*make_codec(), messages, x, 3, 7));
  }
}

TEST_CASE("emulated lossless decodes refuse what the host refuses, in any chunk") {
  constexpr std::int64_t kElements = kChunk + 700;
  std::mt19937 generator(7);
  const Stored values = stored(ValueType::kFloat32, gaussian(kElements, 1));
  const auto sound = encode(*make_codec(), values, 1, nullptr, {});
  const std::size_t second =
      16 + 8 + std::bit_cast<std::uint32_t>(std::array{sound[16], sound[17], sound[18], sound[19]});
  // Places to damage: the starts, the lengths of codes, the sizes of streams, and the streams.
  const std::size_t places[] = {0,
                                8,
                                16,
                                20,
                                24 + 60,
                                24 + 128,
                                second,
                                second + 4,
                                second + 70,
                                second + 8 + 128,
                                sound.size() - 12,
                                sound.size() - 200};
  int refused = 0;
  for (const std::size_t place : places) {
    for (int time = 0; time < 3; ++time) {
      auto damaged = sound;
      damaged[place + generator() % 4] ^= std::byte(1u << generator() % 8);
      INFO("damage at " << place);
      schedule(static_cast<std::uint32_t>(time));
      bool refuses = false;
      Stored expected = values;
      try {
        expected = decode(*make_codec(), damaged, kElements, ValueType::kFloat32);
      } catch (const std::runtime_error&) {
        refuses = true;
        ++refused;
      }
      const Stored found =
          decode_on_gpu(*make_cuda_codec(), {damaged}, values, DecodeMode::kOverwrite, 1, 1);
      if (refuses) {
        const std::vector<float> all = loaded(found);
        REQUIRE(std::all_of(all.begin(), all.end(), [](float v) { return std::isnan(v); }));
      } else {
        REQUIRE(found == expected);
      }
    }
  }
  CHECK(refused >= 24);
}

}  // namespace
}  // namespace hipress::kernels::lossless
