#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

/// Robust least squares for fits of costs: an outlier has little weight.
namespace hipress::costs {

/// Median of at least one value.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Huber's threshold for absolute relative residuals: 1.345 robust standard deviations (95 %
/// efficient for normal noise), and at least 0.1 %, the noise of every timer.
inline double huber_bend(const std::vector<double>& sizes) {
  return std::max(1.345 * 1.4826 * median(sizes), 1e-3);
}

/// Factor of a residual of that size: the square root of Huber's weight, 1 or bend/size.
inline double huber_weight(double size, double bend) {
  return size <= bend ? 1.0 : std::sqrt(bend / size);
}

}  // namespace hipress::costs
