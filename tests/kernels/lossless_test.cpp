// Tests that the lossless codec restores every bit, that messages are as short as the exponents
// allow, and that damaged ones are refused.

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "kernels/frames/typed_values.hpp"
#include "kernels/lossless/codec.hpp"
#include "kernels/lossless/huffman.hpp"
#include "tests/kernels/reference.hpp"

namespace hipress::kernels::lossless {
namespace {

using namespace kernels::testing;

constexpr ValueType kTypes[] = {ValueType::kFloat32, ValueType::kFloat16, ValueType::kBfloat16};

/// Random bits: among them NaNs of all kinds, infinities and denormals.
Stored any_bits(ValueType type, std::int64_t elements) {
  std::mt19937 generator(5);
  std::vector<std::byte> bytes(static_cast<std::size_t>(elements * bytes_per_value(type)));
  for (std::byte& byte : bytes) byte = std::byte(generator() & 0xff);
  return {type, bytes};
}

TEST_CASE("every bit comes back, of every type and length", "[slow]") {
  const auto codec = lossless::make_codec();
  for (const ValueType type : kTypes) {
    for (const std::int64_t elements : kLengths) {
      const Stored normal = stored(type, gaussian(elements, 3)), any = any_bits(type, elements);
      const Stored zeros = stored(type, std::vector<float>(elements, -0.0f));
      for (const Stored& values : {normal, any, zeros}) {
        INFO(to_string(type) << ", " << elements);
        const auto message = encode(*codec, values, 1, nullptr, {}, 1);
        CHECK(message.size() % 4 == 0);
        REQUIRE(decode(*codec, message, elements, type, 3) == values);
      }
    }
  }
}

/// The values, widened to fp32.
std::vector<float> widened(const Stored& values) {
  std::vector<float> wide;
  const auto count = static_cast<std::int64_t>(values.bytes.size()) / bytes_per_value(values.type);
  for (std::int64_t i = 0; i < count; ++i) {
    wide.push_back(load_value(values.bytes.data(), values.type, i));
  }
  return wide;
}

TEST_CASE("fp32 numbers that are numbers of half precision cost what these do") {
  const auto codec = lossless::make_codec();
  for (const ValueType type : {ValueType::kFloat16, ValueType::kBfloat16}) {
    const std::int64_t elements = 200'001;
    INFO(to_string(type));
    // Values so small that some are denormals in fp16.
    std::vector<float> small = gaussian(elements, 3);
    for (float& value : small) value *= 1e-3f;
    const Stored narrow = stored(type, small);
    const std::vector<float> wide = widened(narrow);
    const auto message = encode(*codec, wide, 1, nullptr, {});
    CHECK(same_bits(decode(*codec, message, elements), wide));
    const auto own = encode(*codec, narrow, 1, nullptr, {});
    CHECK(static_cast<double>(message.size()) < 1.01 * static_cast<double>(own.size()));
  }
}

TEST_CASE("each chunk has the form that suits it") {
  // Chunks of 65536 numbers: exact in bf16; in fp16; in neither; in fp16 except for a NaN.
  constexpr std::int64_t kChunk = 65536;
  std::vector<float> values = widened(stored(ValueType::kBfloat16, gaussian(kChunk, 1)));
  const std::vector<float> halves = widened(stored(ValueType::kFloat16, gaussian(kChunk, 2)));
  values.insert(values.end(), halves.begin(), halves.end());
  const std::vector<float> others = gaussian(kChunk, 3);
  values.insert(values.end(), others.begin(), others.end());
  values.insert(values.end(), halves.begin(), halves.end());
  values.back() = std::bit_cast<float>(0x7f800001u);
  const auto codec = lossless::make_codec();
  const auto message = encode(*codec, values, 1, nullptr, {});
  CHECK(same_bits(decode(*codec, message, 4 * kChunk), values));
  std::vector<std::uint32_t> forms;
  for (std::size_t at = 16; at < message.size();) {
    std::uint32_t start[2];
    std::memcpy(start, message.data() + at, sizeof start);
    forms.push_back(start[1]);
    at += sizeof start + start[0];
  }
  CHECK(forms == std::vector<std::uint32_t>{2, 3, 1, 1});
}

TEST_CASE("a few exponents of all sizes come back, however rare some are") {
  // Fibonacci numbers as counts give the longest Huffman codes: 24 bits for 25 symbols, cut to 11.
  std::vector<float> values;
  for (int exponent = 0, a = 1, b = 1; exponent < 25; ++exponent, std::swap(a += b, b)) {
    values.insert(values.end(), a, std::ldexp(1.3f, exponent - 12));
  }
  std::shuffle(values.begin(), values.end(), std::mt19937(1));
  const auto codec = lossless::make_codec();
  const auto message = encode(*codec, values, 1, nullptr, {});
  CHECK(same_bits(decode(*codec, message, static_cast<std::int64_t>(values.size())), values));
}

double ratio(const Stored& values) {
  const auto message = encode(*lossless::make_codec(), values, 1, nullptr, {});
  return static_cast<double>(values.bytes.size()) / static_cast<double>(message.size());
}

TEST_CASE("exponents of normal numbers cost less than three bits") {
  // The exponent of a normally distributed number has an entropy of 2.6 bits, and a Huffman code
  // takes less than 0.1 bits more. The ratio is 16 / 10.7 for bf16 and 32 / 26.7 for fp32.
  const std::vector<float> values = gaussian(1 << 20, 1);
  CHECK(ratio(stored(ValueType::kBfloat16, values)) > 1.45);
  CHECK(ratio(stored(ValueType::kFloat32, values)) > 1.18);
  CHECK(ratio(stored(ValueType::kFloat16, values)) > 1.1);
  // Noise grows by the starts only: 16 bytes per message and 8 per chunk of 256 KiB.
  const Stored noise = any_bits(ValueType::kFloat32, 1 << 20);
  CHECK(encode(*lossless::make_codec(), noise, 1, nullptr, {}).size() ==
        noise.bytes.size() + 16 + 16 * 8);
}

TEST_CASE("no message is longer than the bound") {
  for (const std::int64_t elements : {1, 2, 65535, 65536, 65537, 131073, 300001}) {
    for (const ValueType type : kTypes) {
      const auto codec = lossless::make_codec();
      CHECK(static_cast<std::int64_t>(
                encode(*codec, any_bits(type, elements), 1, nullptr, {}).size()) <=
            codec->encoded_bytes(elements));
    }
  }
}

TEST_CASE("what is divided first comes back as the quotient in fp32") {
  const std::vector<float> inputs = gaussian(3000, 2);
  const auto codec = lossless::make_codec();
  for (const ValueType type : kTypes) {
    const Stored values = stored(type, inputs);
    std::vector<float> expected = loaded(values);
    for (float& value : expected) value = value / 3;
    CHECK(same_bits(decode(*codec, encode(*codec, values, 3, nullptr, {}), 3000), expected));
  }
}

TEST_CASE("messages of several types are added in fp32, in their order") {
  constexpr std::int64_t kElements = 140003;  // more than a chunk of any type
  const auto codec = lossless::make_codec();
  std::vector<float> expected = gaussian(kElements, 1);
  const std::vector<float> x = expected;
  for (float& value : expected) value = value / 3;
  std::vector<std::vector<std::byte>> messages;
  for (const ValueType type : kTypes) {
    const Stored values = stored(type, gaussian(kElements, 2));
    messages.push_back(encode(*codec, values, 1, nullptr, {}));
    const std::vector<float> wide = loaded(values);
    for (std::size_t i = 0; i < wide.size(); ++i) expected[i] = expected[i] + wide[i];
  }
  for (float& value : expected) value = value / 7;
  CHECK(same_bits(decode_add(*codec, messages, x, 3, 7), expected));
}

TEST_CASE("a message is refused that says what cannot be") {
  const auto codec = lossless::make_codec();
  const auto message = encode(*codec, gaussian(5000, 1), 1, nullptr, {});
  REQUIRE(message[16 + 4] == std::byte(1));  // Form::kCoded; the comments below name damaged fields
  const auto damaged = [&](std::size_t byte, std::uint8_t with) {
    auto copy = message;
    copy[byte] ^= std::byte(with);
    return copy;
  };
  using Catch::Contains;
  CHECK_THROWS_WITH(decode(*codec, damaged(0, 1), 5000), Contains("damaged message"));   // elements
  CHECK_THROWS_WITH(decode(*codec, damaged(4, 1), 5000), Contains("damaged message"));   // tag
  CHECK_THROWS_WITH(decode(*codec, damaged(6, 7), 5000), Contains("damaged message"));   // type
  CHECK_THROWS_WITH(decode(*codec, damaged(8, 4), 5000), Contains("expected"));          // bytes
  CHECK_THROWS_WITH(decode(*codec, damaged(16, 4), 5000), Contains("damaged message"));  // chunk
  CHECK_THROWS_WITH(decode(*codec, damaged(20, 2), 5000), Contains("damaged message"));  // form
  const auto halves =
      encode(*codec, stored(ValueType::kBfloat16, gaussian(5000, 1)), 1, nullptr, {});
  REQUIRE(halves[16 + 4] == std::byte(1));
  auto narrower = halves;
  narrower[16 + 4] = std::byte(2);  // kCodedAsBfloat16, which only fp32 messages may have
  CHECK_THROWS_WITH(decode(*codec, narrower, 5000, ValueType::kBfloat16),
                    Contains("damaged message"));
  const std::size_t lengths = 16 + 8;
  for (const std::size_t at : {60, 63}) {  // code lengths of symbols 120 to 127, which occur
    CHECK_THROWS_WITH(decode(*codec, damaged(lengths + at, 0x33), 5000),
                      Contains("damaged message"));
  }
  CHECK_THROWS_WITH(decode(*codec, damaged(lengths + 128, 4), 5000), Contains("damaged message"));
}

TEST_CASE("whatever is damaged in a coded message, nothing is written outside of the slice") {
  // testing::decode() guards both sides of the slice.
  std::mt19937 generator(9);
  const auto codec = lossless::make_codec();
  int refused = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    const auto elements = static_cast<std::int64_t>(600 + generator() % 3000);
    auto message = encode(*codec, gaussian(elements, 1), 1, nullptr, {});
    for (int flips = 1 + static_cast<int>(generator() % 4); flips > 0; --flips) {
      message[generator() % message.size()] ^= std::byte(1 << generator() % 8);
    }
    try {
      decode(*codec, message, elements);
    } catch (const std::runtime_error&) {
      ++refused;
    }
  }
  CHECK(refused > 50);
}

TEST_CASE("a code is complete, and no longer than it may be") {
  std::mt19937 generator(3);
  for (int trial = 0; trial < 300; ++trial) {
    Counts counts = {};
    const int symbols = 1 + static_cast<int>(generator() % 256);
    for (int i = 0; i < symbols; ++i) {
      counts[generator() % 256] += 1 + (generator() >> generator() % 32);
    }
    const CodeLengths lengths = code_lengths(counts);
    REQUIRE(is_complete(lengths));
    for (int symbol = 0; symbol < kSymbols; ++symbol) {
      if (counts[symbol] > 0) REQUIRE(lengths[symbol] > 0);
    }
  }
  CodeLengths lengths = {};
  CHECK_FALSE(is_complete(lengths));
  lengths[3] = lengths[4] = lengths[5] = 1;
  CHECK_FALSE(is_complete(lengths));
  lengths = {};
  lengths[0] = 12;
  CHECK_FALSE(is_complete(lengths));
}

}  // namespace
}  // namespace hipress::kernels::lossless
