// Tests the stopping rule of measurements with made-up times.

#include "profiler/timing.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

namespace hipress::profiler {
namespace {

/// Burst that returns the next time of a list, and at its end always the last one.
std::function<std::vector<double>()> series(std::vector<double> times) {
  return [times, next = std::size_t{0}]() mutable {
    return std::vector{times[std::min(next++, times.size() - 1)]};
  };
}

TEST_CASE("times that do not vary need no more than the least number") {
  const StoppingRule rule;
  const Timing timing = measure_until(rule, series({2e-3}));
  CHECK(timing.warmup == rule.steady_times);
  CHECK(static_cast<int>(timing.seconds.size()) == rule.least);
  CHECK(timing.precise);
}

TEST_CASE("a warm-up lasts until times are steady, and none of it is counted") {
  // Clocks rise: each of ten times is 10 % shorter. Warm-up ends when five times agree within 5 %.
  std::vector<double> times;
  for (int i = 0; i < 10; ++i) times.push_back(std::pow(0.9, i));
  const Timing timing = measure_until({}, series(times));
  CHECK(timing.warmup > 10);
  for (const double time : timing.seconds) CHECK(time == times.back());
}

TEST_CASE("a warm-up that never becomes steady ends") {
  int calls = 0;
  const StoppingRule rule{.warmup_most = 30, .most = 50};
  const Timing timing =
      measure_until(rule, [&] { return std::vector{++calls % 2 == 0 ? 1e-6 : 2e-6}; });
  CHECK(timing.warmup == 30);
  CHECK(timing.seconds.size() == 50);
  CHECK_FALSE(timing.precise);
}

TEST_CASE("noise is answered with more times, up to the budget") {
  std::mt19937 random(7);
  const auto noisy = [&] {
    return std::vector{1e-3 * (1 + 0.2 * static_cast<double>(random() % 1000) / 1000)};
  };
  const Timing timing = measure_until({}, noisy);
  CHECK(timing.precise);
  CHECK(timing.seconds.size() > 11);
  CHECK(median_uncertainty(timing.seconds) <= 0.01);
  const Timing poor = measure_until({.precision = 0, .budget_s = 0.05}, noisy);
  CHECK_FALSE(poor.precise);
  double spent_s = 0;
  for (const double time : poor.seconds) spent_s += time;
  CHECK(spent_s >= 0.05);
  CHECK(spent_s < 0.05 + 2e-3);
}

TEST_CASE("quantiles lie between neighbours") {
  CHECK(quantile({1, 2, 4}, 0.5) == 2);
  CHECK(quantile({1, 2, 4, 8}, 0.5) == 3);  // index 1.5: halfway between 2 and 4
  CHECK(quantile({1, 2, 4}, 0.75) == 3);    // index 1.5, likewise
  CHECK(quantile({5}, 0.9) == 5);
}

TEST_CASE("the median's interval is that of order statistics") {
  // For n = 100: 50 − 0.98·√n = 40.2, so the interval is the 40th to 61st of 1 … 100: 50.5 ± 10.5.
  std::vector<double> times;
  for (int i = 1; i <= 100; ++i) times.push_back(i);
  CHECK(median_uncertainty(times) == Approx(10.5 / 50.5));
  CHECK(std::isinf(median_uncertainty({1, 1, 1, 1, 1, 1, 1})));
  CHECK(median_uncertainty(std::vector<double>(8, 1)) == 0);
}

TEST_CASE("one time that is far off does not move the median's interval") {
  std::vector<double> times(20, 1e-3);
  times[3] = 1;
  CHECK(median_uncertainty(times) == 0);
}

}  // namespace
}  // namespace hipress::profiler
