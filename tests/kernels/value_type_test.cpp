// Tests that gradients in fp16 or bf16 give fp32's results, except for one rounding at the end.

#include <catch2/catch.hpp>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "kernels/frames/typed_values.hpp"
#include "tests/kernels/reference.hpp"

namespace hipress::kernels {
namespace {

using namespace testing;

constexpr ValueType kHalves[] = {ValueType::kFloat16, ValueType::kBfloat16};
const std::vector<std::int64_t> kOddLengths = {1, 3, 31, 33, 1000, 1025, 65537};
const DrawKey kKey{.seed = 5, .step = 6, .node = 7, .first_element = 123};

/// True if the bits are equal, or both are NaN.
bool same_or_nan(float a, float b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b));
}

TEST_CASE("every fp16 and bf16 number is widened exactly") {
  for (const ValueType type : kHalves) {
    std::vector<std::uint16_t> codes(65536);
    for (int code = 0; code < 65536; ++code) codes[code] = static_cast<std::uint16_t>(code);
    std::vector<float> wide(65536);
    widen<float>(codes.data(), type, 0, 65536, wide.data());
    for (int code = 0; code < 65536; ++code) {
      INFO(to_string(type) << ", pattern " << code);
      const float expected = reference::widened(type, codes[code]);
      REQUIRE(same_or_nan(load_value(codes.data(), type, code), expected));
      REQUIRE(same_or_nan(wide[code], expected));
    }
  }
}

TEST_CASE("fp32 is rounded to the nearest number, ties to even, beyond the largest to infinity") {
  std::vector<float> values = {0.0f,   -0.0f,    FLT_MAX,       -FLT_MAX, FLT_TRUE_MIN, INFINITY,
                               65519,  65520,    -65520,        0x1p-25f, 0x1.1p-25f,   0x3p-25f,
                               1.001f, 0x1.01p0, 0x1.010002p0f, 0x1.03p0, std::nanf("")};
  for (int exponent = -150; exponent < 128; ++exponent) {
    for (const float mantissa : {1.0f, 0x1.002p0f, 0x1.006p0f, 0x1.01p0f, 0x1.03p0f, 0x1.ffep0f}) {
      values.push_back(std::ldexp(mantissa, exponent));
      values.push_back(-std::nextafter(values.back(), 2.0f));
    }
  }
  const auto count = static_cast<std::int64_t>(values.size());
  for (const ValueType type : kHalves) {
    const std::vector<std::uint16_t> expected = reference::rounded(type, values);
    std::vector<std::uint16_t> one_by_one(values.size()), range(values.size() + 1, 0x5b5b);
    for (std::int64_t i = 0; i < count; ++i) {
      store_value(one_by_one.data(), type, i, values[i]);
    }
    CHECK(one_by_one == expected);
    round_to<float>(range.data() + 1, type, 0, count, values.data());
    CHECK(std::vector<std::uint16_t>(range.begin() + 1, range.end()) == expected);
    CHECK(range[0] == 0x5b5b);
  }
}

TEST_CASE("halves encode to the message and residual of the same numbers in fp32", "[slow]") {
  for (const AlgorithmRow& row : algorithms()) {
    if (row.additive) continue;  // no encode(); see lowrank_test.cpp
    if (row.lossless) continue;  // no reference; see lossless_test.cpp
    const auto plain = make_codec_for(row.name, Isa::kScalar);
    const int arrays = plain->traits().state_arrays;
    for (const ValueType type : kHalves) {
      for (const std::int64_t elements : kOddLengths) {
        const Stored inputs = stored(type, gaussian(elements, 3));
        const std::vector<float> wide = loaded(inputs), before = gaussian(arrays * elements, 9);
        for (const float divisor : {1.0f, 3.0f}) {
          std::vector<float> expected_residual = before;
          const auto expected = encode(*plain, wide, divisor, nullptr, kKey);
          const auto expected_with =
              encode(*plain, wide, divisor, arrays > 0 ? &expected_residual : nullptr, kKey);
          for (const Isa isa : available_isas()) {
            const auto codec = make_codec_for(row.name, isa);
            for (const int offset : {0, 1}) {
              INFO(to_string(type) << ", " << describe(isa, row.name, elements, offset));
              std::vector<float> residual = before;
              REQUIRE(encode(*codec, inputs, divisor, nullptr, kKey, offset) == expected);
              REQUIRE(encode(*codec, inputs, divisor, arrays > 0 ? &residual : nullptr, kKey,
                             offset) == expected_with);
              REQUIRE(same_bits(residual, expected_residual));
            }
          }
        }
      }
    }
  }
}

/// Encodes the slices of `steps` in turn, with half-computed residuals. Returns the last message
/// and the content of the state.
std::pair<std::vector<std::byte>, std::vector<float>> encode_deferred(
    const Codec& codec, const std::vector<Stored>& steps) {
  const std::int64_t elements = steps[0].elements();
  std::vector<float> state(elements, 0.0f);
  Deferred deferred;
  struct alignas(16) Line {
    std::byte bytes[16];
  };
  const std::int64_t bytes = codec.encoded_bytes(elements);
  std::vector<Line> message(bytes / 16 + 1);
  for (const Stored& inputs : steps) {
    EncodeItem item;
    item.values = inputs.bytes.data();
    item.type = inputs.type;
    item.elements = elements;
    item.state = {state.data(), elements, &deferred};
    item.message = message[0].bytes;
    codec.encode({&item, 1});
  }
  return {{message[0].bytes, message[0].bytes + bytes}, state};
}

TEST_CASE("residuals that are left half done are those of fp32") {
  for (const char* algorithm : {"onebit", "tbq"}) {
    const auto plain = make_codec_for(algorithm, Isa::kScalar);
    for (const ValueType type : kHalves) {
      for (const std::int64_t elements : kOddLengths) {
        // If not `finite`, the third step has a NaN: its encode must restore the residual.
        for (const bool finite : {true, false}) {
          std::vector<Stored> halves, wide;
          for (std::uint32_t step = 0; step < 4; ++step) {
            std::vector<float> inputs = gaussian(elements, step);
            if (!finite && step == 2) inputs[elements / 2] = std::nanf("");
            halves.push_back(stored(type, inputs));
            wide.push_back(stored(ValueType::kFloat32, loaded(halves.back())));
          }
          const auto expected = encode_deferred(*plain, wide);
          for (const Isa isa : available_isas()) {
            INFO(to_string(type) << ", " << describe(isa, algorithm, elements, 0) << finite);
            const auto found = encode_deferred(*make_codec_for(algorithm, isa), halves);
            REQUIRE(found.first == expected.first);
            REQUIRE(same_bits(found.second, expected.second));
          }
        }
      }
    }
  }
}

TEST_CASE("halves decode to what fp32 decodes to, rounded once", "[slow]") {
  constexpr std::size_t kPeers = 11;
  for (const AlgorithmRow& row : algorithms()) {
    if (row.additive) continue;  // no encode(); see lowrank_test.cpp
    const auto plain = make_codec_for(row.name, Isa::kScalar);
    for (const std::int64_t elements : kOddLengths) {
      std::vector<std::vector<std::byte>> messages;
      for (std::uint32_t peer = 0; peer < kPeers; ++peer) {
        messages.push_back(encode(*plain, gaussian(elements, peer), 1, nullptr, {.node = peer}));
      }
      for (const ValueType type : kHalves) {
        const Stored expected = stored(type, decode(*plain, messages[0], elements));
        for (const Isa isa : available_isas()) {
          const auto codec = make_codec_for(row.name, isa);
          for (const int offset : {0, 1}) {
            INFO(to_string(type) << ", " << describe(isa, row.name, elements, offset));
            REQUIRE(decode(*codec, messages[0], elements, type, offset) == expected);
          }
        }
        const Stored x = stored(type, gaussian(elements, 77));
        for (const std::size_t peers : {std::size_t{1}, std::size_t{3}, kPeers}) {
          const std::vector<std::vector<std::byte>> some(messages.begin(),
                                                         messages.begin() + peers);
          for (const auto& [own, sum] : {std::pair(1.0f, 1.0f), std::pair(3.0f, 7.0f)}) {
            const Stored sums = stored(type, decode_add(*plain, some, loaded(x), own, sum));
            for (const Isa isa : available_isas()) {
              INFO(to_string(type) << ", " << describe(isa, row.name, elements, 1) << ", " << peers
                                   << " messages, divisors " << own << ", " << sum);
              REQUIRE(decode_add(*make_codec_for(row.name, isa), some, x, own, sum, 1) == sums);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("a sum in halves is rounded at its end alone") {
  // bf16 has 8 significant bits: 1 + 2^-9 rounds to 1, but 1 + 16 * 2^-9 = 1.03125 is exact.
  const auto fine = make_codec("tbq(tau=0.001953125)");
  const auto small = encode(*fine, {1}, 1, nullptr, {});
  const Stored one = stored(ValueType::kBfloat16, {1});
  CHECK(loaded(decode_add(*fine, {small}, one, 1, 1)) == std::vector<float>{1});
  const std::vector<std::vector<std::byte>> many(16, small);
  CHECK(loaded(decode_add(*fine, many, one, 1, 1)) == std::vector<float>{1.03125f});
  // 65504 is fp16's largest number. Twice that becomes infinity; divided by 2, it is 65504 again.
  const auto large = make_codec("tbq(tau=65504)");
  const auto largest = encode(*large, {1e9f}, 1, nullptr, {});
  const Stored x = stored(ValueType::kFloat16, {65504});
  CHECK(loaded(decode_add(*large, {largest}, x, 1, 1)) == std::vector<float>{INFINITY});
  CHECK(loaded(decode_add(*large, {largest}, x, 1, 2)) == std::vector<float>{65504});
  CHECK(loaded(decode(*make_codec("tbq(tau=65520)"),
                      encode(*make_codec("tbq(tau=65520)"), {-1e9f}, 1, nullptr, {}), 1,
                      ValueType::kFloat16)) == std::vector<float>{-INFINITY});
}

TEST_CASE("special numbers in halves behave as in fp32", "[slow]") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const AlgorithmRow& row : algorithms()) {
    if (row.additive) continue;  // no encode(); see lowrank_test.cpp
    if (row.lossless) continue;  // no reference; see lossless_test.cpp
    const auto plain = make_codec_for(row.name, Isa::kScalar);
    const int arrays = plain->traits().state_arrays;
    for (const ValueType type : kHalves) {
      for (const float special : {0.0f, -0.0f, 0.3f, 65504.0f, -FLT_MAX, 0x1p-24f, 0x1p-133f, kNan,
                                  INFINITY, -INFINITY}) {
        for (const std::int64_t elements : {1, 33, 5001, 40001}) {
          std::vector<float> values = gaussian(elements, 2);
          values[elements - 1] = special;
          for (std::int64_t i = 0; i < elements; i += 3)
            values[i] = i % 2 == 0 ? special : -special;
          const Stored inputs = stored(type, values);
          std::vector<float> expected_residual = gaussian(arrays * elements, 9);
          const std::vector<float> before = expected_residual;
          const auto expected =
              encode(*plain, loaded(inputs), 2, arrays > 0 ? &expected_residual : nullptr, kKey);
          const Stored decoded = stored(type, decode(*plain, expected, elements));
          for (const Isa isa : available_isas()) {
            INFO(to_string(type) << ", " << describe(isa, row.name, elements, 1) << ", "
                                 << special);
            const auto codec = make_codec_for(row.name, isa);
            std::vector<float> residual = before;
            REQUIRE(encode(*codec, inputs, 2, arrays > 0 ? &residual : nullptr, kKey, 1) ==
                    expected);
            REQUIRE(same_bits(residual, expected_residual));
            REQUIRE(decode(*codec, expected, elements, type, 1) == decoded);
          }
        }
      }
    }
  }
}

TEST_CASE("a NaN in a half slice makes it NaN everywhere and leaves its residual") {
  for (const char* algorithm : {"onebit", "tbq", "terngrad"}) {
    for (const ValueType type : kHalves) {
      for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
        std::vector<float> values = gaussian(4001, 3), residual = gaussian(4001, 4);
        values[4000] = bad;
        const std::vector<float> before = residual;
        const auto codec = make_codec(algorithm);
        INFO(algorithm << ", " << to_string(type) << ", " << bad);
        const auto message = encode(*codec, stored(type, values), 2, &residual, {});
        CHECK(same_bits(residual, before));
        for (const float d : loaded(decode(*codec, message, 4001, type))) {
          REQUIRE(std::isnan(d));
        }
        const Stored x = stored(type, gaussian(4001, 5));
        for (const float d : loaded(decode_add(*codec, {message}, x, 1, 1))) {
          REQUIRE(std::isnan(d));
        }
      }
    }
  }
}

TEST_CASE("arrays of halves merge in fp32 and are rounded once") {
  for (const ValueType type : {ValueType::kFloat32, ValueType::kFloat16, ValueType::kBfloat16}) {
    for (const std::int64_t elements : kOddLengths) {
      INFO(to_string(type) << ", " << elements);
      Stored x = stored(type, gaussian(elements, 1));
      const Stored y = stored(type, gaussian(elements, 2)), z = stored(type, gaussian(elements, 3));
      std::vector<float> sums = loaded(x);
      const std::vector<float> second = loaded(y), third = loaded(z);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i] = (sums[i] / 7 + second[i] + third[i]) / 3;
      }
      const void* const others[] = {y.bytes.data(), z.bytes.data()};
      merge(others, elements, x.bytes.data(), type, 7, 3);
      CHECK(x == stored(type, sums));
    }
  }
}

}  // namespace
}  // namespace hipress::kernels
