// Tests the random numbers: draws with different keys are independent, and rounding is unbiased.

#include "kernels/frames/draws.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/kernels/reference.hpp"

namespace hipress::kernels {
namespace {

using namespace testing;

constexpr int kDraws = 1 << 20;

std::vector<float> uniforms(const DrawKey& key, int count = kDraws) {
  std::vector<float> draws;
  const DrawStream stream = draw_stream(key, 1 << 20);
  for (int i = 0; i < count; ++i) draws.push_back(draw_uniform<float>(stream, i));
  return draws;
}

/// Sample correlation of uniform numbers a[i] and b[i + shift], in units of 1 / sqrt(n), its
/// standard deviation if they are independent.
double correlation(const std::vector<float>& a, const std::vector<float>& b, std::size_t shift) {
  double sum = 0;
  const std::size_t count = a.size() - shift;
  for (std::size_t i = 0; i < count; ++i) sum += (a[i] - 0.5) * (b[i + shift] - 0.5);
  return sum / count * 12 * std::sqrt(double(count));
}

TEST_CASE("draws are uniform from 0 to below 1") {
  const auto draws = uniforms({.seed = 1});
  std::vector<double> bins(256, 0.0);
  double sum = 0;
  for (const float u : draws) {
    REQUIRE((u >= 0 && u < 1));
    bins[static_cast<int>(u * 256)] += 1;
    sum += u;
  }
  // Chi-squared with 255 degrees of freedom has mean 255 and standard deviation sqrt(510) = 22.6;
  // five standard deviations are allowed.
  double chi_squared = 0;
  const double expected = kDraws / 256.0;
  for (const double bin : bins) chi_squared += (bin - expected) * (bin - expected) / expected;
  CHECK(chi_squared < 255 + 5 * std::sqrt(510.0));
  CHECK(chi_squared > 255 - 5 * std::sqrt(510.0));
  // The mean of n uniform numbers has standard deviation 1 / sqrt(12 n).
  CHECK(std::fabs(sum / kDraws - 0.5) < 5 / std::sqrt(12.0 * kDraws));
}

TEST_CASE("neighbouring elements, steps, nodes, gradients, roles and seeds are uncorrelated") {
  const DrawKey base{.seed = 9, .step = 100, .node = 3, .gradient = 4, .role = 1};
  const auto draws = uniforms(base);
  for (const std::size_t shift : {1u, 2u, 16u, 32u, 1024u, 65536u}) {
    CHECK(std::fabs(correlation(draws, draws, shift)) < 5);
  }
  std::vector<DrawKey> others(6, base);
  others[0].seed += 1;
  others[1].step += 1;
  others[2].node += 1;
  others[3].gradient += 1;
  others[4].role += 1;
  others[5].first_element += 1 << 20;
  for (const DrawKey& other : others) {
    const auto theirs = uniforms(other);
    for (const std::size_t shift : {0u, 1u, 7u, 32u}) {
      CHECK(std::fabs(correlation(draws, theirs, shift)) < 5);
    }
    // With a linear generator seeded with seed + index, all draws would differ by one constant.
    int equal_steps = 0;
    for (int i = 1; i < 1000; ++i) {
      equal_steps += theirs[i] - draws[i] == theirs[i - 1] - draws[i - 1];
    }
    CHECK(equal_steps < 3);
  }
}

TEST_CASE("an element's draw does not depend on where its partition begins") {
  const DrawStream whole = draw_stream({.seed = 2}, std::int64_t{1} << 40);
  const DrawStream part = draw_stream({.seed = 2, .first_element = 96}, 1000);
  for (int i = 0; i < 1000; ++i) CHECK(draw<float>(whole, 96 + i) == draw<float>(part, i));
}

TEST_CASE("indices beyond 2^32 have draws of their own, within a vector too") {
  const std::int64_t wrap = std::int64_t{1} << 32;
  const DrawStream low = draw_stream({.seed = 2}, std::int64_t{1} << 40);
  int equal = 0;
  for (int i = 0; i < 1000; ++i) equal += draw<float>(low, i) == draw<float>(low, wrap + i);
  CHECK(equal == 0);
  // Encodes a slice that crosses the boundary in the middle of a vector.
  const DrawKey key{.seed = 2, .first_element = wrap - 5};
  const std::vector<float> inputs = gaussian(100, 1);
  const auto expected = reference::terngrad(inputs, 1, 2, key);
  for (const Isa isa : available_isas()) {
    CHECK(encode(*make_codec_for("terngrad", isa), inputs, 1, nullptr, key) == expected.message);
  }
}

TEST_CASE("terngrad is unbiased", "[slow]") {
  // A value v is rounded up with probability p, the fractional part of (v - min) / gap. The
  // variance per draw is gap^2 p (1 - p) ≤ gap^2 / 4, so the mean of n draws has a standard
  // deviation of at most gap / (2 sqrt(n)). Five standard deviations are allowed.
  for (const int bits : {1, 2, 4}) {
    const auto codec = make_codec("terngrad(b=" + std::to_string(bits) + ")");
    const double gap = 2.0 / ((1 << bits) - 1);
    for (const float value : {-0.9f, -0.3f, 0.0f, 0.123f, 0.77f}) {
      std::vector<float> inputs(1000002, value);
      inputs[1000000] = -1;
      inputs[1000001] = 1;
      const auto decoded = decode(*codec, encode(*codec, inputs, 1, nullptr, {.seed = 3}), 1000002);
      double sum = 0;
      for (int i = 0; i < 1000000; ++i) sum += decoded[i];
      INFO(bits << " bits, value " << value);
      CHECK(std::fabs(sum / 1000000 - value) < 5 * gap / (2 * 1000.0));
    }
  }
}

TEST_CASE("nodes draw differently, so that averaging over 16 of them helps 16 times") {
  // Inputs of 0 are in the middle of two levels with gap 2: the variance is 1 for one node, and
  // 1/16 for the mean of 16. The sample variance over n = 10^5 elements has a relative standard
  // deviation of sqrt(2/n) = 0.0045; five are allowed.
  const std::int64_t elements = 100000;
  std::vector<float> inputs(elements, 0.0f);
  inputs[0] = -1;
  inputs[1] = 1;
  const auto codec = make_codec("terngrad(b=1)");
  std::vector<double> mean(elements, 0.0);
  for (std::uint32_t node = 0; node < 16; ++node) {
    const auto decoded =
        decode(*codec, encode(*codec, inputs, 1, nullptr, {.node = node}), elements);
    for (std::int64_t i = 0; i < elements; ++i) mean[i] += decoded[i] / 16.0;
  }
  double variance = 0;
  for (std::int64_t i = 2; i < elements; ++i) variance += mean[i] * mean[i] / (elements - 2);
  CHECK(variance == Approx(1.0 / 16).epsilon(5 * 0.0045));
}

}  // namespace
}  // namespace hipress::kernels
