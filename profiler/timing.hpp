#pragma once

#include <functional>
#include <vector>

namespace hipress::profiler {

/// Stopping rule of a measurement. Its numbers trade time for certainty.
struct StoppingRule {
  // Warm-up, during which clocks rise, and caches and memory pools fill. It ends when the last
  // `steady_times` times are within `steady` (relative) of their median, or after `warmup_most`
  // times.
  int steady_times = 5;
  double steady = 0.05;
  int warmup_most = 100;
  // Measurement. After `least` times it ends as soon as median_uncertainty() is at most
  // `precision`, or after `most` times or `budget_s` seconds in total.
  double precision = 0.01;
  int least = 11;
  int most = 500;
  double budget_s = 1;
};

/// Result of measure_until().
struct Timing {
  std::vector<double> seconds;  ///< measured times, without the warm-up
  int warmup = 0;               ///< number of discarded times
  bool precise = false;         ///< true if it reached the rule's precision
};

/// Calls `burst` until the rule ends the measurement. `burst` measures something once or a few
/// times, and returns the seconds of each.
Timing measure_until(const StoppingRule& rule, const std::function<std::vector<double>()>& burst);

double median_of(std::vector<double> values);  ///< requires at least one value

/// Quantile `q`, interpolated linearly between neighbours. Requires at least one value, in
/// ascending order.
double quantile(const std::vector<double>& sorted, double q);

/// Half the width of the median's 95 % confidence interval, divided by the median. Infinite for
/// fewer than eight times, which are too few for an interval.
double median_uncertainty(std::vector<double> seconds);

}  // namespace hipress::profiler
