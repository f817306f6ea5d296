#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

/// What the fits of costs share: least squares in which a bad sample weighs little.
namespace hipress::costs {

/// At least one value.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Huber's bend for sizes of relative residuals: 1.345 robust standard deviations (95 % efficient
/// for normal noise), and not less than the noise that every timer has.
inline double huber_bend(const std::vector<double>& sizes) {
  return std::max(1.345 * 1.4826 * median(sizes), 1e-3);
}

/// What a residual of that size is multiplied by. Squared, this is Huber's weight bend/size.
inline double huber_weight(double size, double bend) {
  return size <= bend ? 1.0 : std::sqrt(bend / size);
}

}  // namespace hipress::costs
