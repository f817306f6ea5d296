#include "costs/curve.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <stdexcept>

namespace hipress::costs {
namespace {

/// Samples of `cost`, one per power of two from 2^10 to 2^26.
template <typename Cost>
std::vector<Sample> sample_powers(Cost cost) {
  std::vector<Sample> samples;
  for (int power = 10; power <= 26; ++power) {
    const std::int64_t x = std::int64_t{1} << power;
    const double seconds = cost(static_cast<double>(x));
    samples.push_back({x, seconds, seconds, seconds, 5});
  }
  return samples;
}

TEST_CASE("a curve is A + B·x of the piece that x lies in, and not below its floor") {
  const Curve curve = {{{0, 1e-6, 1e-9}, {1000, 0, 3e-9}}, 1.5e-6};
  CHECK(curve(100) == 1.5e-6);             // 1 us + 100 ns = 1.1 us is below the floor
  CHECK(curve(600) == 1e-6 + 1e-9 * 600);  // 1.6 us
  CHECK(curve(1000) == 3e-9 * 1000);       // the second piece applies at its `from`
  CHECK(curve.at(800.5) == 1e-6 + 1e-9 * 800.5);
}

TEST_CASE("the first piece also holds below its start, and no pieces cost nothing") {
  CHECK(Curve{{{1000, 2e-6, 0}}, 0}(10) == 2e-6);
  CHECK(Curve{}(1 << 20) == 0);
}

TEST_CASE("a line is found again from its samples") {
  const Fit fit = fit_curve(sample_powers([](double x) { return 5e-6 + 2e-11 * x; }));
  REQUIRE(fit.curve.pieces.size() == 1);
  CHECK(fit.curve.pieces[0].a_s == Approx(5e-6).epsilon(1e-6));
  CHECK(fit.curve.pieces[0].b_s == Approx(2e-11).epsilon(1e-6));
  CHECK(fit.max_relative_residual < 1e-6);
}

TEST_CASE("one bad sample does not bend the line, and shows in the residual") {
  auto samples = sample_powers([](double x) { return 5e-6 + 2e-11 * x; });
  samples.back().median_s *= 3;  // the largest sample, which would attract a plain least-squares
                                 // line
  const Fit fit = fit_curve(samples);
  REQUIRE(fit.curve.pieces.size() == 1);
  CHECK(fit.curve.pieces[0].b_s == Approx(2e-11).epsilon(0.02));
  CHECK(fit.median_relative_residual < 0.01);
  CHECK(fit.max_relative_residual == Approx(2.0 / 3).epsilon(0.02));  // the curve is at 1/3 of the
                                                                      // bad sample
}

TEST_CASE("a curve goes through means where they are told") {
  auto samples = sample_powers([](double x) { return 5e-6 + 2e-11 * x; });
  for (Sample& sample : samples) sample.mean_s = 1.5 * sample.median_s;
  const Fit fit = fit_curve(samples);
  REQUIRE(fit.curve.pieces.size() == 1);
  CHECK(fit.curve.pieces[0].a_s == Approx(7.5e-6).epsilon(1e-6));
  CHECK(fit.curve.pieces[0].b_s == Approx(3e-11).epsilon(1e-6));
  CHECK(fit.max_relative_residual < 1e-6);
}

TEST_CASE("where the slope changes, the fit has a piece on each side") {
  // Up to 2^18 elements fit into a cache and take 1e-11 s each; each further one takes 6e-11 s.
  const double knee = 1 << 18;
  const auto cost = [&](double x) {
    return 2e-6 + 1e-11 * x + (x > knee ? 5e-11 * (x - knee) : 0);
  };
  const Fit fit = fit_curve(sample_powers(cost));
  REQUIRE(fit.curve.pieces.size() == 2);
  CHECK(fit.curve.pieces[0].b_s == Approx(1e-11).epsilon(0.05));
  CHECK(fit.curve.pieces[1].b_s == Approx(6e-11).epsilon(0.05));
  CHECK(fit.curve.pieces[1].from >= knee / 2);
  CHECK(fit.curve.pieces[1].from <= knee * 2);
  CHECK(fit.max_relative_residual < 0.05);
}

TEST_CASE("noise of a few percent does not make pieces") {
  int i = 0;
  const Fit fit = fit_curve(sample_powers([&](double x) {
    const double noise = (i++ * 7 % 5 - 2) * 0.01;  // −2 % … +2 %, without a trend
    return (5e-6 + 2e-11 * x) * (1 + noise);
  }));
  CHECK(fit.curve.pieces.size() == 1);
}

TEST_CASE("a and B are never negative") {
  SECTION("times that fall with size give a constant") {
    const Fit fit =
        fit_curve({{1000, 3e-6, 0, 0, 1}, {2000, 2e-6, 0, 0, 1}, {4000, 1e-6, 0, 0, 1}});
    CHECK(fit.curve.pieces[0].b_s == 0);
    CHECK(fit.curve.pieces[0].a_s > 0);
  }
  SECTION("a line that would cross zero starts there") {
    const Fit fit =
        fit_curve({{1000, 1e-7, 0, 0, 1}, {2000, 1e-6, 0, 0, 1}, {3000, 2e-6, 0, 0, 1}});
    CHECK(fit.curve.pieces[0].a_s == 0);
    CHECK(fit.curve.pieces[0].b_s > 0);
  }
}

TEST_CASE("one sample, or one size, gives a constant") {
  CHECK(fit_curve({{4096, 7e-6, 7e-6, 7e-6, 1}}).curve(1) == Approx(7e-6));
  const Fit fit = fit_curve({{0, 2e-6, 0, 0, 1}, {0, 2e-6, 0, 0, 1}});
  CHECK(fit.curve(1 << 20) == Approx(2e-6));
}

TEST_CASE("samples that no time can have are refused") {
  CHECK_THROWS_AS(fit_curve({}), std::invalid_argument);
  for (const double bad : {0.0, -1e-6, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()}) {
    CHECK_THROWS_WITH(fit_curve({{1024, bad, bad, bad, 1}}), Catch::Contains("x = 1024"));
  }
}

}  // namespace
}  // namespace hipress::costs
