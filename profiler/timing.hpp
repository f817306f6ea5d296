#pragma once

#include <functional>
#include <vector>

namespace hipress::profiler {

/// When a cost is known well enough. Each number trades time for certainty.
struct StoppingRule {
  // Warm-up: clocks rise, caches and pools of memory fill. It is over once the last `steady_times`
  // times lie within `steady` of their median, or after `warmup_most` of them.
  int steady_times = 5;
  double steady = 0.05;
  int warmup_most = 100;
  // Times are taken until the median is known to within `precision`: until the 95 % confidence
  // interval of order statistics is that narrow. At least `least` times are taken; beyond these,
  // none after `most`, or after `budget_s` together.
  double precision = 0.01;
  int least = 11;
  int most = 500;
  double budget_s = 1;
};

/// What came of it.
struct Timing {
  std::vector<double> seconds;  ///< without the warm-up
  int warmup = 0;               ///< times that were thrown away
  bool precise = false;         ///< stopped because the median is known, not for want of time
};

/// Takes times until the rule is content. `burst` measures something a few times, and returns the
/// seconds of each; at least one.
Timing measure_until(const StoppingRule& rule, const std::function<std::vector<double>()>& burst);

double median_of(std::vector<double> values);  ///< at least one value

/// What a share `q` of the values lie below, by linear interpolation between neighbours; at least
/// one value, in ascending order.
double quantile(const std::vector<double>& sorted, double q);

/// Half the width of the median's 95 % confidence interval, relative to it; infinite for fewer than
/// eight times, which hold no such interval.
double median_uncertainty(std::vector<double> seconds);

}  // namespace hipress::profiler
