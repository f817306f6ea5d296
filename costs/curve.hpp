#pragma once

#include <cstdint>
#include <vector>

namespace hipress::costs {

/// Most seconds that a file may give per element or byte: beyond, it is a mistake.
inline constexpr double kMaxSlope_s = 1;
/// Most that a file may multiply a cost by.
inline constexpr double kMaxRatio = 1e6;

/// A cost as a function of size: piecewise A + B·x seconds, never below `floor_s`. Evaluated with
/// IEEE additions and multiplications alone, so that every compiler gives the same number.
struct Curve {
  struct Piece {
    double from = 0;  ///< holds for x >= from; the first piece also below
    double a_s = 0;   ///< seconds; not negative in the first piece
    double b_s = 0;   ///< seconds per unit of x
    bool operator==(const Piece&) const = default;
  };
  std::vector<Piece> pieces;  ///< sorted by `from`; none: costs nothing
  double floor_s = 0;

  /// Seconds for x elements or bytes.
  double operator()(std::int64_t x) const { return at(static_cast<double>(x)); }
  /// The same where x is an average that need not be whole (elements per partition, say).
  double at(double x) const;
  /// The curve that takes `factor` times as long at every size.
  Curve times(double factor) const;

  bool operator==(const Curve&) const = default;
};

/// A curve between two, `share` of the way from `a` to `b`, 0 to 1: pieces and floors are mixed in
/// proportion.
Curve between(const Curve& a, const Curve& b, double share);

/// One measurement: x (elements or bytes), the median of its repetitions and their spread.
struct Sample {
  std::int64_t x = 0;
  double median_s = 0;
  double p10_s = 0;
  double p90_s = 0;
  int repetitions = 0;
  double mean_s = 0;  ///< of what happens so often that sums of it count; 0: not told

  /// What a curve goes through.
  double expected_s() const { return mean_s > 0 ? mean_s : median_s; }
  bool operator==(const Sample&) const = default;
};

/// A fitted curve and how well it explains its samples.
struct Fit {
  Curve curve;
  double median_relative_residual = 0;  ///< |curve − sample| / sample
  double max_relative_residual = 0;
};

/// Fits A + B·x to samples by iteratively reweighted least squares (Huber weights on relative
/// residuals, so one bad sample does not bend the line), B and the first piece's A not negative;
/// splits into up to six pieces where that lowers the residual clearly and the curve does not
/// fall at the split. At least one sample, in any order, each with a positive, finite time
/// (std::invalid_argument otherwise); one sample gives a constant.
Fit fit_curve(const std::vector<Sample>& samples);

}  // namespace hipress::costs
