#include "profiler/variation.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "profiler/profiler.hpp"

using namespace hipress;
using namespace hipress::profiler;

namespace {

/// A group with the logarithms −2d, −d, 0, d, 2d.
std::vector<double> spaced(double d, double median_s) {
  std::vector<double> group;
  for (int i = -2; i <= 2; ++i) group.push_back(median_s * std::exp(i * d));
  return group;
}

}  // namespace

TEST_CASE("variation is the interquartile range of logarithms, whatever the groups are of") {
  Variation variation;
  CHECK(variation.deviation() == 0);
  variation.add({7});  // a single time is ignored
  CHECK(variation.deviation() == 0);
  // Quartiles are −d and d. √(5/4) corrects for a median of five values, which is too close to
  // them.
  variation.add(spaced(0.1, 1e-3));
  CHECK(variation.deviation() == Approx(0.2 * std::sqrt(1.25) / 1.349));
  variation.add(spaced(0.1, 7));
  CHECK(variation.deviation() == Approx(0.2 * std::sqrt(1.25) / 1.349));
}

TEST_CASE("a disturbed value does not count") {
  Variation variation;
  variation.add({1, 1, 1, 1, 1, 1, 1, 100});
  CHECK(variation.deviation() == 0);
}

TEST_CASE("a spread has floors, takes what varies more, and keeps the base's for what is kept") {
  Variations steady;
  steady.passes.add({1, 1});
  CHECK(steady.spread({}) ==
        costs::Spread{
            .host = 0.03, .links = 0.005, .compute = 0.02, .model = 0.03, .iterations = 0.01});
  Variations varied;
  varied.passes.add(spaced(0.05, 1));
  varied.runs.add(spaced(0.2, 1));
  varied.links.add(spaced(0.3, 1));
  varied.iterations.add(spaced(0.4, 1));
  const double unit = 2 * std::sqrt(1.25) / 1.349;
  const costs::Spread spread = varied.spread({});
  CHECK(spread.host == Approx(0.2 * unit));
  CHECK(spread.links == Approx(0.3 * unit));
  CHECK(spread.iterations == Approx(0.4 * unit));

  costs::Profile base;
  base.spread = {.host = 0.5, .links = 0.06, .compute = 0.02, .model = 0.01, .iterations = 0.07};
  Options options;
  options.base = &base;
  options.anew = Part::kKernels;
  const costs::Spread kernels = varied.spread(options);
  CHECK(kernels.host == 0.5);
  CHECK(kernels.links == 0.06);
  CHECK(kernels.iterations == 0.07);
  CHECK(kernels.model == 0.01);
  options.anew = Part::kLinks;
  CHECK(varied.spread(options).links == Approx(0.3 * unit));
  CHECK(varied.spread(options).model == 0.03);  // the links are those of loopback
}
