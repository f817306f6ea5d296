#pragma once

#include <vector>

#include "costs/profile.hpp"
#include "profiler/options.hpp"

namespace hipress::profiler {

/// Variation of times that would be equal on a machine of constant speed. Computed from the
/// logarithms of time / (median of its group). A group has the times of the same work.
class Variation {
 public:
  /// Adds a group of times in seconds; a single time is ignored.
  void add(const std::vector<double>& group_s);
  /// Standard deviation of the logarithms, estimated by the interquartile range, which outliers
  /// hardly affect; 0 without values.
  double deviation() const;

 private:
  std::vector<double> logarithms_;
};

/// Variations that determine a profile's spread, collected while it is measured.
struct Variations {
  Variation passes;      ///< all tasks of a codec, between passes
  Variation runs;        ///< core time of the same transfers, between runs with new threads
  Variation links;       ///< times of large messages
  Variation iterations;  ///< iterations within a run

  /// Spread of the measured profile; for parts that were not measured anew, that of the base. Each
  /// value has a minimum, of 0.5 to 3 %, since few measurements can agree by chance.
  costs::Spread spread(const Options& options) const;
};

}  // namespace hipress::profiler
