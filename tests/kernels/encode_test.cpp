// Tests that encoders give the reference's bits on every instruction set.

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/kernels/reference.hpp"

namespace hipress::kernels {
namespace {

using namespace testing;

void require_reference(const std::string& algorithm, const std::vector<float>& inputs,
                       float divisor, int arrays, const DrawKey& key, Isa isa, int offset) {
  INFO(describe(isa, algorithm, static_cast<std::int64_t>(inputs.size()), offset));
  const auto codec = make_codec_for(algorithm, isa);
  std::vector<float> residual = gaussian(static_cast<std::int64_t>(inputs.size()) * arrays, 99);
  const reference::Encoded expected = reference::encode(algorithm, inputs, divisor, residual, key);
  const auto message =
      encode(*codec, inputs, divisor, arrays > 0 ? &residual : nullptr, key, offset);
  REQUIRE(message == expected.message);
  REQUIRE(same_bits(decode(*codec, message, static_cast<std::int64_t>(inputs.size()), offset),
                    expected.decoded));
  if (arrays > 0) REQUIRE(same_bits(residual, expected.residual));
}

TEST_CASE("every length gives the reference's message, decoded values and residual", "[slow]") {
  const DrawKey key{.seed = 5, .step = 6, .node = 7, .gradient = 8, .role = 1, .first_element = 64};
  for (const AlgorithmRow& row : algorithms()) {
    if (row.additive) continue;  // no encode(); see lowrank_test.cpp
    if (row.lossless) continue;  // no reference; see lossless_test.cpp
    const int arrays = make_codec(row.name)->traits().state_arrays;
    for (const std::int64_t elements : kLengths) {
      const std::vector<float> inputs = gaussian(elements, 3);
      for (const Isa isa : available_isas()) {
        require_reference(std::string(row.name), inputs, 1, 0, key, isa, 0);
        if (arrays > 0) require_reference(std::string(row.name), inputs, 1, arrays, key, isa, 0);
      }
    }
  }
}

TEST_CASE("values and residuals may begin at any multiple of 4 bytes", "[slow]") {
  for (const AlgorithmRow& row : algorithms()) {
    if (row.additive) continue;  // no encode(); see lowrank_test.cpp
    if (row.lossless) continue;  // no reference; see lossless_test.cpp
    const int arrays = make_codec(row.name)->traits().state_arrays;
    for (const std::int64_t elements : {33, 1025, 5000}) {
      const std::vector<float> inputs = gaussian(elements, 4);
      for (int offset = 0; offset < 16; ++offset) {
        for (const Isa isa : available_isas()) {
          require_reference(std::string(row.name), inputs, 1, arrays, {}, isa, offset);
        }
      }
    }
  }
}

TEST_CASE("values are divided first, by IEEE division") {
  // 1/3 is not a float, so multiplying by a reciprocal would round twice and change some elements.
  for (const AlgorithmRow& row : algorithms()) {
    if (row.additive) continue;  // no encode(); see lowrank_test.cpp
    if (row.lossless) continue;  // no reference; see lossless_test.cpp
    const int arrays = make_codec(row.name)->traits().state_arrays;
    for (const float divisor : {3.0f, 16.0f, 7.0f}) {
      for (const Isa isa : available_isas()) {
        require_reference(std::string(row.name), gaussian(4099, 5), divisor, arrays, {}, isa, 0);
      }
    }
  }
}

TEST_CASE("the message is 16 bytes of header and then bits planes of the words") {
  // A word of 32 elements takes 4 bytes per bit of a code. Empty slices and casts have no header.
  CHECK(make_codec("onebit")->encoded_bytes(0) == 0);
  CHECK(make_codec("onebit")->encoded_bytes(1) == 16 + 4);
  CHECK(make_codec("onebit")->encoded_bytes(33) == 16 + 2 * 4);
  CHECK(make_codec("tbq")->encoded_bytes(33) == 16 + 2 * 2 * 4);
  CHECK(make_codec("terngrad(b=8)")->encoded_bytes(32) == 16 + 8 * 4);
  CHECK(make_codec("fp16")->encoded_bytes(3) == 8);
  // 2^33 elements are 2^28 words; a 32-bit number of elements would overflow.
  CHECK(make_codec("onebit")->encoded_bytes(std::int64_t{1} << 33) ==
        16 + (std::int64_t{1} << 28) * 4);
  CHECK(make_codec("bf16")->encoded_bytes(std::int64_t{1} << 33) == std::int64_t{1} << 34);
}

TEST_CASE("messages grow with the slice and stay multiples of 4") {
  for (const AlgorithmRow& row : algorithms()) {
    const auto codec = make_codec(row.name);
    for (std::int64_t elements = 1; elements < 300; ++elements) {
      CHECK(codec->encoded_bytes(elements) >= codec->encoded_bytes(elements - 1));
      CHECK(codec->encoded_bytes(elements) % 4 == 0);
    }
  }
}

TEST_CASE("terngrad's minimum and maximum are not truncated to integers") {
  // In integers, the minimum and the maximum would both be 0.
  const std::vector<float> inputs = {0.25f, 0.5f, 0.75f};
  for (const Isa isa : available_isas()) {
    const auto codec = make_codec_for("terngrad(b=1)", isa);
    const auto decoded = decode(*codec, encode(*codec, inputs, 1, nullptr, {}), 3);
    CHECK(decoded[0] == 0.25f);  // the minimum is a level: floor(0 + u) = 0 for every draw u
    CHECK(decoded[2] == 0.75f);  // the maximum is a level: floor(1 + u) = 1 for every draw u
  }
}

TEST_CASE("terngrad matches the reference for every number of bits") {
  const DrawKey key{.seed = 1, .node = 3};
  for (int bits = 1; bits <= 8; ++bits) {
    for (const std::int64_t elements : {1, 31, 33, 2049, 40000}) {
      const std::vector<float> inputs = gaussian(elements, 6);
      const reference::Encoded expected = reference::terngrad(inputs, 1, bits, key);
      for (const Isa isa : available_isas()) {
        INFO(describe(isa, "terngrad", elements, 0) << ", " << bits << " bits");
        const auto codec = make_codec_for("terngrad(b=" + std::to_string(bits) + ")", isa);
        const auto message = encode(*codec, inputs, 1, nullptr, key);
        REQUIRE(message == expected.message);
        REQUIRE(same_bits(decode(*codec, message, elements), expected.decoded));
      }
    }
  }
}

TEST_CASE("one batch of several slices is the same as one after the other") {
  const auto codec = make_codec("tbq");
  const std::vector<float> first = gaussian(100, 1), second = gaussian(2000, 2);
  struct alignas(16) Message {
    std::byte bytes[1024];
  };
  Message messages[2] = {};
  EncodeItem items[2];
  items[0].values = first.data();
  items[0].elements = 100;
  items[0].message = messages[0].bytes;
  items[1].values = second.data();
  items[1].elements = 2000;
  items[1].message = messages[1].bytes;
  codec->encode(items);
  const auto expected_first = encode(*codec, first, 1, nullptr, {});
  const auto expected_second = encode(*codec, second, 1, nullptr, {});
  CHECK(std::equal(expected_first.begin(), expected_first.end(), messages[0].bytes));
  CHECK(std::equal(expected_second.begin(), expected_second.end(), messages[1].bytes));
}

}  // namespace
}  // namespace hipress::kernels
