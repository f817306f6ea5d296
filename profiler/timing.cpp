#include "profiler/timing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace hipress::profiler {
namespace {

bool is_steady(const StoppingRule& rule, std::span<const double> times) {
  const auto count = static_cast<std::size_t>(rule.steady_times);
  if (times.size() < count) return false;
  const auto last = times.last(count);
  const double median = median_of({last.begin(), last.end()});
  return std::ranges::all_of(
      last, [&](double time) { return std::abs(time - median) <= rule.steady * median; });
}

}  // namespace

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

double quantile(const std::vector<double>& sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double median_uncertainty(std::vector<double> seconds) {
  // The number of times below the true median is binomial with p = 1/2 and standard deviation √n/2.
  // So with 95 % probability the median is between the order statistics 0.98·√n to either side.
  std::sort(seconds.begin(), seconds.end());
  const auto n = static_cast<double>(seconds.size());
  const double low = std::floor(n / 2 - 0.98 * std::sqrt(n)) - 1;
  if (low < 0) return std::numeric_limits<double>::infinity();
  const auto below = static_cast<std::size_t>(low);
  const double width = seconds[seconds.size() - 1 - below] - seconds[below];
  return width / 2 / quantile(seconds, 0.5);
}

Timing measure_until(const StoppingRule& rule, const std::function<std::vector<double>()>& burst) {
  Timing timing;
  std::vector<double> warmup;
  while (static_cast<int>(warmup.size()) < rule.warmup_most && !is_steady(rule, warmup)) {
    const std::vector<double> times = burst();
    warmup.insert(warmup.end(), times.begin(), times.end());
  }
  timing.warmup = static_cast<int>(warmup.size());
  double spent_s = 0;
  for (;;) {
    for (const double time : burst()) {
      timing.seconds.push_back(time);
      spent_s += time;
    }
    const auto count = static_cast<int>(timing.seconds.size());
    if (count < rule.least) continue;
    timing.precise = median_uncertainty(timing.seconds) <= rule.precision;
    if (timing.precise || count >= rule.most || spent_s >= rule.budget_s) return timing;
  }
}

}  // namespace hipress::profiler
