#pragma once

#include <cstdint>
#include <vector>

namespace hipress::costs {

/// Maximum number of seconds per element or byte in a file; a larger one is a mistake.
inline constexpr double kMaxSlope_s = 1;
/// Maximum factor of a cost in a file.
inline constexpr double kMaxRatio = 1e6;

/// Cost as a function of size: piecewise A + B·x seconds, never below `floor_s`. Evaluated with
/// IEEE additions and multiplications only, so every compiler gives the same result.
struct Curve {
  struct Piece {
    double from = 0;  ///< applies from this x on; the first piece also below it
    double a_s = 0;   ///< seconds; not negative in the first piece
    double b_s = 0;   ///< seconds per unit of x
    bool operator==(const Piece&) const = default;
  };
  std::vector<Piece> pieces;  ///< sorted by `from`; empty: zero cost
  double floor_s = 0;

  /// Seconds for x elements or bytes.
  double operator()(std::int64_t x) const { return at(static_cast<double>(x)); }
  /// Seconds for a fractional x, such as an average number of elements per partition.
  double at(double x) const;
  /// Curve with times scaled by `factor`.
  Curve times(double factor) const;

  bool operator==(const Curve&) const = default;
};

/// Interpolates pieces and floors linearly between two curves; `share` goes from 0 (a) to 1 (b).
Curve between(const Curve& a, const Curve& b, double share);

/// One measurement: a size x (elements or bytes), the median of the repetitions and their spread.
struct Sample {
  std::int64_t x = 0;
  double median_s = 0;
  double p10_s = 0;
  double p90_s = 0;
  int repetitions = 0;
  double mean_s = 0;  ///< for frequent events, of which the sum matters; 0: unknown

  /// Value to fit: the mean if known, else the median.
  double expected_s() const { return mean_s > 0 ? mean_s : median_s; }
  bool operator==(const Sample&) const = default;
};

/// A fitted curve with its residuals.
struct Fit {
  Curve curve;
  double median_relative_residual = 0;  ///< |curve − sample| / sample
  double max_relative_residual = 0;
};

/// Fits A + B·x to samples by iteratively reweighted least squares, with B and the first piece's A
/// not negative. Huber weights on relative residuals limit the effect of a bad sample. Splits the
/// curve into up to six pieces where that clearly lowers the residual and the curve does not fall
/// at the split. One sample gives a constant. Throws std::invalid_argument without samples, or if a
/// time is not positive and finite.
Fit fit_curve(const std::vector<Sample>& samples);

}  // namespace hipress::costs
