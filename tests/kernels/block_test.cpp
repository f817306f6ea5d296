// Tests block quantisers: the reference's bits for every parameter, error bounds, damaged messages.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "kernels/codec/algorithm_list.hpp"
#include "tests/kernels/reference.hpp"
#include "tests/kernels/round_trip.hpp"

namespace hipress::kernels {
namespace {

using namespace testing;

const std::vector<std::string> kNames = {"int8block", "int4block", "fp8block", "fp4block",
                                         "fp4block(format=e2m1)"};
const std::vector<std::string> kFp4 = {"fp4block", "fp4block(format=e2m1)"};

bool is_fp4(const std::string& name) { return name.starts_with("fp4block"); }
/// Magnitudes of codes 0 to 7 of "fp4block" or "fp4block(format=e2m1)".
std::vector<float> magnitudes_of(const std::string& name) {
  return reference::magnitudes_of_fp4(name == kFp4[1]);
}

std::string text_of(const std::string& name, const reference::Blocks& how) {
  const std::string rotated = with_parameter(name, "rotate", how.rotate ? "1" : "0");
  const std::string rounded = with_parameter(rotated, "stochastic", how.stochastic ? "1" : "0");
  return with_parameter(rounded, "block", std::to_string(how.block));
}

TEST_CASE("quantisers of blocks match the reference for every size, rotation and rounding") {
  const DrawKey key{.seed = 4, .node = 2, .first_element = (std::int64_t{1} << 32) - 100};
  for (const std::string& name : kNames) {
    for (const std::int64_t block : {32, 96, 256, 2048}) {
      for (const int choice : {0, 1, 2, 3}) {
        const reference::Blocks how{block, choice % 2 == 1, choice / 2 == 1};
        const std::string text = text_of(name, how);
        for (const std::int64_t elements : {1, 31, 33, 250, 4097}) {
          const std::vector<float> inputs = gaussian(elements, 6);
          const reference::Encoded expected = reference::blocks(name, inputs, 3, key, how);
          for (const Isa isa : available_isas()) {
            INFO(describe(isa, text, elements, 0));
            const auto codec = make_codec_for(text, isa);
            const auto message = encode(*codec, inputs, 3, nullptr, key);
            REQUIRE(message == expected.message);
            REQUIRE(same_bits(decode(*codec, message, elements), expected.decoded));
          }
        }
      }
    }
  }
}

TEST_CASE("a sum of several messages is the sum of what each decodes to, in their order") {
  for (const char* text :
       {"int8block", "int4block(rotate=1)", "fp8block(block=96)", "fp4block(format=e2m1)"}) {
    const std::int64_t elements = 777;
    const std::vector<float> x = gaussian(elements, 1);
    for (const Isa isa : available_isas()) {
      const auto codec = make_codec_for(text, isa);
      std::vector<std::vector<std::byte>> messages;
      std::vector<float> expected = x;
      for (float& value : expected) value = value / 3;
      for (std::uint32_t peer = 0; peer < 5; ++peer) {
        messages.push_back(encode(*codec, gaussian(elements, 10 + peer), 1, nullptr, {}));
        const std::vector<float> decoded = decode(*codec, messages.back(), elements);
        for (std::size_t i = 0; i < decoded.size(); ++i) expected[i] = expected[i] + decoded[i];
      }
      for (float& value : expected) value = value / 7;
      INFO(to_string(isa) << ", " << text);
      CHECK(same_bits(decode_add(*codec, messages, x, 3, 7), expected));
    }
  }
}

/// Values whose size differs from block to block by powers of two, with zeros and denormals.
std::vector<float> of_all_sizes(std::int64_t elements) {
  std::vector<float> values = gaussian(elements, 9);
  for (std::int64_t i = 0; i < elements; ++i) {
    values[i] = std::ldexp(values[i], static_cast<int>(i / 64 % 200) - 120);
    if (i % 11 == 0) values[i] = 0;
    if (i % 13 == 0) values[i] = static_cast<float>(i % 5) * FLT_TRUE_MIN;
  }
  return values;
}

TEST_CASE("an element is off by at most half a step, or a step with stochastic rounding") {
  // With even levels, a step is the block's largest magnitude, at least 1e-30, divided by the
  // number of levels on one side. With E4M3, it is the distance of the two floats around the
  // element: its power of two over 8, and at least 2^-9 times the scale. With E3M0 and E2M1, it is
  // the distance of the two neighbours in the table. Rounding in fp32 may add 2^-13 of the bound.
  constexpr std::int64_t kElements = 30011;
  const std::vector<float> inputs = of_all_sizes(kElements);
  for (const std::string& name : kNames) {
    for (const bool stochastic : {false, true}) {
      const auto codec = make_codec(text_of(name, {64, false, stochastic}));
      const std::vector<float> decoded = round_trip(*codec, inputs);
      for (std::int64_t i = 0; i < kElements; ++i) {
        const std::int64_t first = i / 64 * 64, end = std::min(first + 64, kElements);
        double most = 1e-30;
        for (std::int64_t k = first; k < end; ++k) {
          most = std::max(most, std::fabs(double{inputs[k]}));
        }
        double step = most / (name == "int4block" ? 7 : 127);
        if (name == "fp8block") {
          int exponent = 0;
          std::frexp(std::fabs(inputs[i]) / (most / 448) * (1 + 1e-6), &exponent);
          step = std::ldexp(most / 448, std::max(exponent - 4, -9));
        }
        if (is_fp4(name)) {
          const std::vector<float> magnitudes = magnitudes_of(name);
          const double scale = most / magnitudes.back();
          std::size_t above = 1;
          while (above < 7 && magnitudes[above] * scale <= std::fabs(inputs[i]) * (1 + 1e-6)) {
            ++above;
          }
          step = (magnitudes[above] - magnitudes[above - 1]) * scale;
        }
        const double bound = step * (stochastic ? 1 : 0.5) * (1 + 0x1p-13);
        INFO(name << ", element " << i << ": " << inputs[i] << ", " << decoded[i]);
        REQUIRE(std::fabs(double{decoded[i]} - inputs[i]) <= bound);
      }
    }
  }
}

TEST_CASE("stochastic rounding is right on average") {
  // 4000 draws of a value that is 0.3 or 0.8 of a step above a level: the mean may be off by 4
  // standard deviations of at most step · sqrt(0.25 / 4000).
  struct Case {
    std::string name;
    double levels, value, step;
  };
  const std::vector<Case> cases = {{"int8block", 127, 2.3, 1},
                                   {"int4block", 7, 2.3, 1},
                                   {"fp8block", 448, 17.6, 2},             // between 16 and 18
                                   {"fp4block", 64, 10.4, 8},              // between 8 and 16
                                   {"fp4block(format=e2m1)", 6, 2.3, 1}};  // between 2 and 3
  for (const auto& [name, levels, of_levels, steps] : cases) {
    const auto value = static_cast<float>(of_levels / levels);
    const double step = steps / levels;
    std::vector<float> inputs(32, 0.0f);
    inputs[0] = 1;
    inputs[5] = value;
    const auto codec = make_codec(text_of(name, {32, false, true}));
    double sum = 0;
    for (std::uint64_t step_number = 0; step_number < 4000; ++step_number) {
      sum += round_trip(*codec, inputs, {.step = step_number})[5];
    }
    INFO(name);
    CHECK(std::fabs(sum / 4000 - value) < 4 * step * std::sqrt(0.25 / 4000));
  }
}

TEST_CASE("a rotation keeps lengths, is its own inverse, and spreads an outlier") {
  for (const std::int64_t count : {1, 32, 96, 1000, 2048}) {
    std::vector<float> values = gaussian(count, 2);
    const std::vector<float> before = values;
    reference::rotate(values.data(), count);
    double length = 0, length_before = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      length += double{values[i]} * values[i];
      length_before += double{before[i]} * before[i];
    }
    CHECK(length == Approx(length_before).epsilon(1e-5));
    reference::rotate(values.data(), count);
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(std::fabs(values[i] - before[i]) < 1e-5);
  }
  // The rotation spreads the 100 as 100 / sqrt(256) to each element; the other values are at most
  // about 2. So the step falls from 100/7 to about (100/16 + 2)/7.
  std::vector<float> inputs = gaussian(256, 3);
  inputs[77] = 100;
  const auto error = [&](const char* text) {
    const std::vector<float> decoded = round_trip(*make_codec(text), inputs);
    double sum = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) sum += std::pow(decoded[i] - inputs[i], 2.0);
    return sum;
  };
  const double plain = error("int4block(block=256,stochastic=0)");
  CHECK(error("int4block(block=256,stochastic=0,rotate=1)") < plain / 2);
  CHECK(error("int4block(block=256,stochastic=1,rotate=1)") <
        error("int4block(block=256,stochastic=1)") / 10);
}

TEST_CASE("zeros stay zeros, and what is not finite makes the slice NaN") {
  for (const std::string& name : kNames) {
    for (const char* rotate : {"0", "1"}) {
      const auto codec = make_codec(with_parameter(name, "rotate", rotate));
      for (const float value : round_trip(*codec, std::vector<float>(1000, 0.0f))) {
        CHECK(value == 0);
      }
      for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
        std::vector<float> inputs = gaussian(1000, 2);
        inputs[999] = bad;
        for (const float value : round_trip(*codec, inputs)) CHECK(std::isnan(value));
      }
    }
  }
}

/// The 4-bit codes in a message of one block of 32 elements.
std::vector<int> codes_of(const std::vector<std::byte>& message) {
  std::vector<int> codes(32);
  for (std::size_t i = 0; i < 32; ++i) {
    // The scale begins at byte 16, the codes at byte 32: a byte for elements l and l + 16.
    const int both = std::to_integer<int>(message[32 + i % 16]);
    codes[i] = i < 16 ? both & 15 : both >> 4;
  }
  return codes;
}

TEST_CASE("codes of 4-bit floats are those of the table, and what is half way becomes even") {
  // The block's largest magnitude is the table's, so the scale is 1.
  for (const std::string& name : kFp4) {
    const std::vector<float> magnitudes = magnitudes_of(name);
    std::vector<float> inputs = {magnitudes[7]};
    std::vector<int> expected = {7};
    const auto add = [&](float value, int code) {
      inputs.push_back(value);
      expected.push_back(code);
    };
    for (int code = 0; code < 8; ++code) {
      add(magnitudes[code], code);
      if (code > 0) add(-magnitudes[code], code + 8);
    }
    for (int code = 0; code < 7; ++code) {
      const float middle = (magnitudes[code] + magnitudes[code + 1]) / 2;
      // The middle gets the even one of the two codes. Codes of negative values are 8 higher.
      add(middle, (code + 1) / 2 * 2);
      if (code < 2) add(std::nextafter(middle, 0.0f), code);
      if (code < 2) add(-std::nextafter(middle, 100.0f), code + 9);
    }
    inputs.resize(32, 0.0f);
    expected.resize(32, 0);
    for (const Isa isa : available_isas()) {
      const auto codec = make_codec_for(name, isa);
      const auto message = encode(*codec, inputs, 1, nullptr, {});
      INFO(to_string(isa) << ", " << name);
      REQUIRE(message.size() == 48);
      float scale = 0;
      std::memcpy(&scale, &message[16], sizeof scale);
      CHECK(scale == 1);
      CHECK(codes_of(message) == expected);
      const std::vector<float> decoded = decode(*codec, message, 32);
      for (std::size_t i = 0; i < 32; ++i) {
        const float magnitude = magnitudes[static_cast<std::size_t>(expected[i] % 8)];
        CHECK(decoded[i] == (expected[i] < 8 ? magnitude : -magnitude));
      }
    }
  }
}

TEST_CASE("the largest magnitude of a block comes back, and no other block changes") {
  // E3M0's scale is the largest magnitude over 64, which is exact. E2M1's is the largest magnitude
  // over 6; six times the rounded quotient is off by at most 2^-23. The last block has one element.
  for (const std::string& name : kFp4) {
    std::vector<float> inputs = gaussian(97, 8);
    const auto codec = make_codec(name);
    const std::vector<float> before = round_trip(*codec, inputs);
    inputs[64] = 3e38f;
    inputs[96] = -1e-20f;
    const std::vector<float> after = round_trip(*codec, inputs);
    INFO(name);
    CHECK(after[64] == Approx(3e38f).epsilon(0x1p-23));
    CHECK(after[96] == Approx(-1e-20f).epsilon(0x1p-23));
    CHECK(std::equal(before.begin(), before.begin() + 64, after.begin()));
    for (std::size_t i = 65; i < 96; ++i) CHECK(after[i] == 0);
    if (name == "fp4block") CHECK(after[64] == inputs[64]);
  }
}

TEST_CASE("4-bit floats lose of normal numbers what their place in the order of accuracy says") {
  // RMS error, relative to the numbers' RMS. int4block's steps are 1/7 of the largest of 64
  // numbers, on average 0.345 standard deviations, so stochastic rounding errs by 0.345 / sqrt(6) =
  // 0.14, and a little more because the largest varies. The expected values below are measured.
  const std::vector<float> inputs = gaussian(1 << 20, 12);
  const auto lost = [&](const std::string& name) {
    const std::vector<float> decoded = round_trip(*make_codec(name), inputs);
    double error = 0, all = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      error += std::pow(double{decoded[i]} - inputs[i], 2);
      all += std::pow(double{inputs[i]}, 2);
    }
    return std::sqrt(error / all);
  };
  CHECK(lost("int4block") == Approx(0.152).margin(0.002));
  CHECK(lost("fp4block") == Approx(0.181).margin(0.002));
  CHECK(lost("fp4block(format=e2m1)") == Approx(0.101).margin(0.002));
  CHECK(lost("int8block") < lost("fp4block(format=e2m1)") / 5);
  CHECK(lost("terngrad") > 2 * lost("fp4block"));
}

TEST_CASE("floats of blocks that no encoder writes are refused before anything is written") {
  for (const std::string& name : kNames) {
    const auto codec = make_codec(name);
    auto message = encode(*codec, gaussian(1000, 1), 1, nullptr, {});
    const float bad = INFINITY;
    std::memcpy(&message[16 + 4], &bad, sizeof bad);  // float of the second block
    CHECK_THROWS_WITH(decode(*codec, message, 1000), Catch::Contains("damaged message"));
  }
}

}  // namespace
}  // namespace hipress::kernels
