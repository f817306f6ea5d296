#pragma once

#include <vector>

#include "costs/profile.hpp"
#include "profiler/options.hpp"

namespace hipress::profiler {

/// Variation of times that would be equal on a machine of constant speed: logarithms of their
/// ratios to the median of their group. Groups are measurements of different things.
class Variation {
 public:
  /// Adds positive times of one thing; a single time is ignored.
  void add(const std::vector<double>& group_s);
  /// Standard deviation of the logarithms, estimated by the interquartile range, which is robust
  /// against some disturbed values; 0 without values.
  double deviation() const;

 private:
  std::vector<double> logarithms_;
};

/// Variations that determine a profile's spread, collected while it is measured.
struct Variations {
  Variation passes;      ///< all tasks of a codec, between passes
  Variation runs;        ///< core time of the same transfers, between runs with new threads
  Variation links;       ///< large messages
  Variation iterations;  ///< iterations of one run

  /// The spread of the measured profile; for parts that were not measured anew, the base's. At
  /// least 0.5 to 3 %, since few values can agree by chance.
  costs::Spread spread(const Options& options) const;
};

}  // namespace hipress::profiler
