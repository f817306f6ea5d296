// Tests decoding (to the values that each algorithm defines), decode-and-add, and merge.

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/kernels/reference.hpp"

namespace hipress::kernels {
namespace {

using namespace testing;

TEST_CASE("onebit decodes to the mean of each sign") {
  // Non-negative: 1, 3 (mean 2). Negative: -2, -4, -6 (mean -4).
  const std::vector<float> inputs = {1, -2, 3, -4, -6};
  const auto codec = make_codec("onebit");
  CHECK(decode(*codec, encode(*codec, inputs, 1, nullptr, {}), 5) ==
        std::vector<float>{2, -4, 2, -4, -4});
}

TEST_CASE("tbq decodes to plus or minus tau at and beyond the threshold, else to 0") {
  const std::vector<float> inputs = {0.25f, 0.24f, -0.25f, -0.24f, 9, -9, 0};
  const auto codec = make_codec("tbq(tau=0.25)");
  CHECK(decode(*codec, encode(*codec, inputs, 1, nullptr, {}), 7) ==
        std::vector<float>{0.25f, 0, -0.25f, 0, 0.25f, -0.25f, 0});
}

TEST_CASE("terngrad decodes to a level next to the value") {
  // |d - v| < gap = (max - min) / (2^b - 1), plus the rounding errors of d and of v - min, together
  // at most 4 ulp of the range.
  const std::vector<float> inputs = gaussian(100000, 8);
  const auto [least, most] = std::minmax_element(inputs.begin(), inputs.end());
  for (const int bits : {1, 2, 4, 8}) {
    const auto codec = make_codec("terngrad(b=" + std::to_string(bits) + ")");
    const auto decoded = decode(*codec, encode(*codec, inputs, 1, nullptr, {}), 100000);
    const double gap = (double(*most) - *least) / ((1 << bits) - 1);
    double worst = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      worst = std::max(worst, std::fabs(double(decoded[i]) - inputs[i]));
    }
    CHECK(worst <= gap + 4 * 0x1p-24 * (double(*most) - *least));
    CHECK(worst > gap / 2);  // rounding to nearest would stay below gap / 2
  }
}

TEST_CASE("casts are exact for numbers that the format has, and off by half a last place at most") {
  const auto half = make_codec("fp16");
  const auto brain = make_codec("bf16");
  const std::vector<float> exact = {0, 1, -1, 0.5f, 1.5f, 2048, -0.25f};
  CHECK(same_bits(decode(*half, encode(*half, exact, 1, nullptr, {}), 7), exact));
  const std::vector<float> inputs = gaussian(10000, 9);
  const auto from_half = decode(*half, encode(*half, inputs, 1, nullptr, {}), 10000);
  const auto from_brain = decode(*brain, encode(*brain, inputs, 1, nullptr, {}), 10000);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    // fp16 has 11 significant bits, bf16 has 8; 2^-25 is half of fp16's smallest number.
    CHECK(std::fabs(from_half[i] - inputs[i]) <= std::fabs(inputs[i]) * 0x1p-11f + 0x1p-25f);
    CHECK(std::fabs(from_brain[i] - inputs[i]) <= std::fabs(inputs[i]) * 0x1p-8f);
  }
}

TEST_CASE("decode-and-add is (x / own + d1 + d2 + ...) / sum in the order given") {
  for (const AlgorithmRow& row : algorithms()) {
    if (row.additive) continue;  // no encode(); see lowrank_test.cpp
    for (const std::int64_t elements : {1, 31, 33, 1025, 4099}) {
      for (const Isa isa : available_isas()) {
        for (const int offset : {0, 3}) {
          INFO(describe(isa, row.name, elements, offset));
          const auto codec = make_codec_for(row.name, isa);
          std::vector<std::vector<std::byte>> messages;
          std::vector<std::vector<float>> decoded;
          for (std::uint32_t peer = 0; peer < 3; ++peer) {
            messages.push_back(
                encode(*codec, gaussian(elements, peer), 1, nullptr, {.node = peer}));
            decoded.push_back(decode(*codec, messages.back(), elements));
          }
          const std::vector<float> own = gaussian(elements, 50);
          std::vector<float> expected;
          for (std::size_t i = 0; i < own.size(); ++i) {
            float sum = own[i] / 3.0f;
            for (const auto& d : decoded) sum = sum + d[i];
            expected.push_back(sum / 5.0f);
          }
          REQUIRE(same_bits(decode_add(*codec, messages, own, 3, 5, offset), expected));
        }
      }
    }
  }
}

TEST_CASE("adding nothing only divides") {
  const auto codec = make_codec("tbq");
  CHECK(decode_add(*codec, {}, {8, 4, 2}, 2, 4) == std::vector<float>{1, 0.5f, 0.25f});
}

TEST_CASE("merge is (x / own + y1 + y2 + ...) / sum in the order given") {
  for (const std::int64_t elements : {0, 1, 31, 33, 1025, 100003}) {
    std::vector<float> x = gaussian(elements, 1);
    const std::vector<float> first = gaussian(elements, 2), second = gaussian(elements, 3);
    std::vector<float> expected;
    for (std::size_t i = 0; i < x.size(); ++i) {
      expected.push_back(((x[i] / 7.0f + first[i]) + second[i]) / 3.0f);
    }
    const float* others[] = {first.data(), second.data()};
    merge(others, elements, x.data(), 7, 3);
    CHECK(same_bits(x, expected));
  }
}

TEST_CASE("large results that bypass the caches are complete", "[slow]") {
  // From 2^20 elements, the CPU writes aligned results past the caches; offset 1 is not aligned.
  const std::int64_t elements = (1 << 20) + 45;
  const std::vector<float> inputs = gaussian(elements, 12);
  for (const AlgorithmRow& row : algorithms()) {
    if (row.additive) continue;  // no encode(); see lowrank_test.cpp
    for (const Isa isa : available_isas()) {
      const auto codec = make_codec_for(row.name, isa);
      const auto message = encode(*codec, inputs, 1, nullptr, {});
      CHECK(same_bits(decode(*codec, message, elements, 0), decode(*codec, message, elements, 1)));
    }
  }
}

}  // namespace
}  // namespace hipress::kernels
