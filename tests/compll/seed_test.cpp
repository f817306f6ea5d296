// Tests CompLL's published TernGradEncode, unchanged: the compiler's notes say how it reads what
// the program leaves open, and the codec codes every element once, with unbiased rounding.

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <random>

#include "kernels/codec/codec.hpp"
#include "kernels/compll/compiler.hpp"
#include "tests/kernels/round_trip.hpp"

namespace hipress::kernels {
namespace {

const std::string kSeed = std::string(HIPRESS_SOURCE_DIR) + "/tests/compll/data/TernGradEncode.pse";

std::unique_ptr<Codec> seed_codec(int bits) {
  setenv("HIPRESS_CACHE", HIPRESS_TEST_CACHE, 1);
  return make_codec(kSeed + "(bitwidth=" + std::to_string(bits) + ")");
}

std::vector<float> uniform(std::int64_t elements, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> values(-0.3f, 0.5f);
  std::vector<float> made;
  for (std::int64_t i = 0; i < elements; ++i) made.push_back(values(generator));
  return made;
}

using testing::round_trip;

TEST_CASE("the published program compiles unchanged, and says what it does with initial values") {
  const compll::Compiled compiled = compll::compile(kSeed);
  CHECK(compiled.program.name == "TernGrad");
  REQUIRE(compiled.notes.size() == 3);
  CHECK_THAT(compiled.notes[0], Catch::Contains(":18:30: note: this reduce is a maximum"));
  CHECK_THAT(compiled.notes[1], Catch::Contains("note: this reduce is a minimum"));
  CHECK_THAT(compiled.notes[2], Catch::Contains("'bitwidth' is the number of bits"));
}

TEST_CASE("every element is coded once, within one gap of what it was") {
  for (const int bits : {1, 2, 4, 8}) {
    const auto codec = seed_codec(bits);
    for (const std::int64_t elements : {1, 5, 31, 33, 1000003}) {
      INFO(bits << " bits, " << elements << " elements");
      const std::vector<float> inputs = uniform(elements, 7);
      const std::vector<float> decoded = round_trip(*codec, inputs, {.seed = 3});
      const auto [least, most] = std::minmax_element(inputs.begin(), inputs.end());
      // Rounding changes a value by less than a gap; fp32 arithmetic adds a few ulps.
      const double gap = (double(*most) - *least) / ((1 << bits) - 1);
      double worst = 0;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        worst = std::max(worst, std::fabs(double(decoded[i]) - inputs[i]));
      }
      CHECK(worst <= gap * (1 + 0x1p-20) + 1e-6);
      // The minimum and maximum have the lowest and highest code, whatever the draws.
      const auto at = [&](auto place) {
        return decoded[static_cast<std::size_t>(place - inputs.begin())];
      };
      CHECK(at(least) == *least);
      CHECK(at(most) == Approx(*most).epsilon(1e-6));
    }
  }
}

TEST_CASE("its rounding is unbiased") {
  // A value between two levels is drawn n = 10^6 times, and rounded up with probability p. The mean
  // has a standard deviation of gap sqrt(p (1 - p) / n) <= gap / 2000; an error of six is allowed.
  const auto codec = seed_codec(2);
  std::vector<float> inputs(1000002, 0.37f);
  inputs[0] = 0;
  inputs[1] = 1;
  const std::vector<float> decoded = round_trip(*codec, inputs, {.seed = 11});
  double sum = 0;
  for (std::size_t i = 2; i < decoded.size(); ++i) sum += decoded[i];
  CHECK(std::fabs(sum / 1e6 - 0.37) < 6 * (1.0 / 3) / 2000);
}

TEST_CASE("a constant gradient survives: nothing is divided by a gap of 0") {
  const auto codec = seed_codec(4);
  CHECK(round_trip(*codec, std::vector<float>(77, -2.5f), {}) == std::vector<float>(77, -2.5f));
}

TEST_CASE("a parameter without a default must be given") {
  setenv("HIPRESS_CACHE", HIPRESS_TEST_CACHE, 1);
  CHECK_THROWS_WITH(make_codec(kSeed), Catch::Contains("'bitwidth' has no default"));
  CHECK_THROWS_WITH(make_codec(kSeed + "(bitwidth=9)"), Catch::Contains("out of range"));
}

TEST_CASE("a program that is wrong or missing is refused by its own message") {
  CHECK_THROWS_WITH(make_codec("no/such.pse"), Catch::Contains("no/such.pse"));
}

}  // namespace
}  // namespace hipress::kernels
