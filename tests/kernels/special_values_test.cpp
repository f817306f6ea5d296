// Tests of all-zero, constant, huge, denormal, NaN and infinite inputs.

#include <catch2/catch.hpp>
#include <cfloat>
#include <cmath>
#include <limits>

#include "kernels/codec/lanes.hpp"
#include "tests/kernels/reference.hpp"

namespace hipress::kernels {
namespace {

using namespace testing;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool all_nan(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isnan(v); });
}

std::vector<float> round_trip(const Codec& codec, const std::vector<float>& inputs) {
  return decode(codec, encode(codec, inputs, 1, nullptr, {}),
                static_cast<std::int64_t>(inputs.size()));
}

TEST_CASE("special inputs give the reference's bits on every instruction set", "[slow]") {
  std::vector<std::pair<std::string, std::vector<float>>> cases;
  for (const std::int64_t elements : {5, 1500, 33000}) {
    const auto filled = [&](auto value_of) {
      std::vector<float> values;
      for (std::int64_t i = 0; i < elements; ++i) values.push_back(value_of(i));
      return values;
    };
    cases.emplace_back("zeros", filled([](auto) { return 0.0f; }));
    cases.emplace_back("negative zeros", filled([](auto) { return -0.0f; }));
    cases.emplace_back("both zeros", filled([](auto i) { return i % 3 == 0 ? -0.0f : 0.0f; }));
    cases.emplace_back("constant", filled([](auto) { return 0.3f; }));
    cases.emplace_back("largest", filled([](auto) { return FLT_MAX; }));
    cases.emplace_back("both largest", filled([](auto i) { return i % 2 ? FLT_MAX : -FLT_MAX; }));
    cases.emplace_back("smallest", filled([](auto i) { return i % 2 ? FLT_TRUE_MIN : 0.0f; }));
    cases.emplace_back("denormal", filled([](auto i) { return (i % 77 - 38) * FLT_TRUE_MIN; }));
    cases.emplace_back("one large", filled([](auto i) { return i == 3 ? 1e30f : 1e-30f; }));
    cases.emplace_back("half way", filled([](auto i) { return 1.0f + i % 64 * 0x1p-12f; }));
    cases.emplace_back("near fp16's end", filled([](auto i) { return 65472.0f + i % 80; }));
    cases.emplace_back("fp16's denormals", filled([](auto i) { return i % 4096 * 0x1p-27f; }));
    cases.emplace_back("a NaN", filled([](auto i) { return i == 4 ? kNan : 0.7f; }));
    cases.emplace_back("a last infinity",
                       filled([&](auto i) { return i == elements - 1 ? kInfinity : -0.6f; }));
    cases.emplace_back("a first infinity", filled([](auto i) { return i == 0 ? -kInfinity : 1; }));
  }
  for (const AlgorithmRow& row : algorithms()) {
    if (row.additive) continue;  // no encode(); see lowrank_test.cpp
    if (row.lossless) continue;  // no reference; see lossless_test.cpp
    const int arrays = make_codec(row.name)->traits().state_arrays;
    for (const auto& [name, inputs] : cases) {
      const std::vector<float> before =
          gaussian(static_cast<std::int64_t>(inputs.size()) * arrays, 3);
      const auto plain = reference::encode(row.name, inputs, 1, {}, {});
      const auto with_residual = reference::encode(row.name, inputs, 1, before, {});
      for (const Isa isa : available_isas()) {
        INFO(to_string(isa) << ": " << row.name << ", " << name << ", " << inputs.size());
        const auto codec = make_codec_for(row.name, isa);
        const auto message = encode(*codec, inputs, 1, nullptr, {});
        REQUIRE(message == plain.message);
        const auto decoded = decode(*codec, message, static_cast<std::int64_t>(inputs.size()));
        REQUIRE((all_nan(plain.decoded) ? all_nan(decoded) : same_bits(decoded, plain.decoded)));
        if (arrays > 0) {
          std::vector<float> residual = before;
          REQUIRE(encode(*codec, inputs, 1, &residual, {}) == with_residual.message);
          REQUIRE(same_bits(residual, with_residual.residual));
        }
      }
    }
  }
}

TEST_CASE("zeros and constants survive, with no division by a zero gap") {
  for (const char* algorithm : {"onebit", "terngrad", "terngrad(b=8)", "fp16", "bf16"}) {
    const auto codec = make_codec(algorithm);
    INFO(algorithm);
    for (const float constant : {0.0f, 0.5f, -2.0f, FLT_MAX, -0x1p-130f}) {
      if (std::string(algorithm) == "fp16" && std::fabs(constant) > 1e4f) continue;
      if (std::string(algorithm) == "fp16" && std::fabs(constant) == 0x1p-130f) continue;
      if (std::string(algorithm) == "bf16" && constant == FLT_MAX) continue;
      const std::vector<float> inputs(1000, constant);
      CHECK(round_trip(*codec, inputs) == inputs);
    }
  }
  CHECK(round_trip(*make_codec("tbq"), std::vector<float>(100, 0.0f)) ==
        std::vector<float>(100, 0.0f));
}

TEST_CASE("a mean or a range of the largest floats does not overflow") {
  std::vector<float> inputs;
  for (int i = 0; i < 100000; ++i) inputs.push_back(i % 2 == 0 ? FLT_MAX : -FLT_MAX);
  CHECK(round_trip(*make_codec("onebit"), inputs) == inputs);
  for (const char* algorithm : {"terngrad(b=1)", "terngrad", "terngrad(b=8)"}) {
    CHECK(round_trip(*make_codec(algorithm), inputs) == inputs);
  }
}

TEST_CASE("a slice with one NaN or infinity decodes to NaN everywhere and leaves its residual") {
  for (const char* algorithm : {"onebit", "tbq", "terngrad"}) {
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
      for (const std::size_t place : {0u, 31u, 1024u, 39999u}) {
        std::vector<float> inputs = gaussian(40000, 3);
        inputs[place] = bad;
        const auto codec = make_codec(algorithm);
        INFO(algorithm << ", " << bad << " at " << place);
        std::vector<float> residual = gaussian(40000, 4);
        const std::vector<float> before = residual;
        const auto message = encode(*codec, inputs, 2, &residual, {});
        CHECK(same_bits(residual, before));
        CHECK(all_nan(decode(*codec, message, 40000)));
        CHECK(all_nan(decode_add(*codec, {message}, gaussian(40000, 5), 1, 1)));
      }
    }
  }
}

TEST_CASE("fp16 and bf16 convert element by element") {
  const std::vector<float> inputs = {kNan, 1, kInfinity, -kInfinity, 65504, 65519, 65520, -1e6f};
  const auto half = round_trip(*make_codec("fp16"), inputs);
  CHECK(std::isnan(half[0]));
  CHECK(half[1] == 1);
  CHECK(half[2] == kInfinity);
  CHECK(half[3] == -kInfinity);
  CHECK(half[4] == 65504);
  CHECK(half[5] == 65504);      // less than halfway from 65504 to 65536
  CHECK(half[6] == kInfinity);  // halfway: rounds to even, infinity
  CHECK(half[7] == -kInfinity);
  const auto brain = round_trip(*make_codec("bf16"), {kNan, FLT_MAX, 0x1.01p0f, 0x1.03p0f, -0.0f});
  CHECK(std::isnan(brain[0]));
  CHECK(brain[1] == kInfinity);  // FLT_MAX rounds up to 2^128
  CHECK(brain[2] == 1.0f);       // a tie goes to the even 1.00
  CHECK(brain[3] == 0x1.04p0f);  // a tie goes to the even 1.04
  CHECK(std::signbit(brain[4]));
}

TEST_CASE("every one of the 65536 fp16 and bf16 numbers survives a round trip") {
  for (const char* algorithm : {"fp16", "bf16"}) {
    for (const Isa isa : available_isas()) {
      const auto codec = make_codec_for(algorithm, isa);
      std::vector<std::byte> message(2 * 65536);
      for (int code = 0; code < 65536; ++code) {
        message[2 * code] = std::byte(code & 0xff);
        message[2 * code + 1] = std::byte(code >> 8);
      }
      const auto values = decode(*codec, message, 65536);
      const auto again = encode(*codec, values, 1, nullptr, {});
      const auto values_again = decode(*codec, again, 65536);
      int changed = 0;
      for (int code = 0; code < 65536; ++code) {
        const bool equal =
            again[2 * code] == message[2 * code] && again[2 * code + 1] == message[2 * code + 1];
        // Only signalling NaNs may change: they become quiet.
        if (!equal && !std::isnan(values[code])) ++changed;
        if (std::isnan(values[code])) CHECK(std::isnan(values_again[code]));
      }
      CHECK(changed == 0);
    }
  }
}

TEST_CASE("dividing gives the quotient's bits, also where a reciprocal multiplies") {
  // Tests all exponents, also of subnormals, with mantissas that round up, down and to even.
  for (const float by : {1.0f, 2.0f, 3.0f, 4.0f, 6.0f, 7.0f, 64.0f, 1000.0f, 1024.0f, 0x1p99f}) {
    const Divisor divisor = Divisor::of(by);
    CHECK(divisor.multiplies == (std::exp2(std::round(std::log2(by))) == by));
    int wrong = 0;
    for (std::uint32_t exponent = 0; exponent < 512; ++exponent) {
      for (std::uint32_t mantissa = 0; mantissa < 1u << 23; mantissa += mantissa < 64 ? 1 : 65537) {
        const float value = as_float(exponent << 23 | mantissa);
        if (!is_finite(value)) continue;
        const volatile float divides = by;
        if (as_bits(divisor(value)) != as_bits(value / divides)) ++wrong;
      }
    }
    CHECK(wrong == 0);
  }
}

}  // namespace
}  // namespace hipress::kernels
