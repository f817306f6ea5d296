#pragma once

#include <vector>

#include "costs/profile.hpp"
#include "profiler/options.hpp"

namespace hipress::profiler {

/// How much values vary that would be the same on a machine that is always as fast: logarithms of
/// their ratios to the median of their group. Groups are of different things.
class Variation {
 public:
  /// Positive times of one thing; a single one tells nothing.
  void add(const std::vector<double>& group_s);
  /// The standard deviation of such a logarithm, by the interquartile range, which some disturbed
  /// values leave alone; 0 without values.
  double deviation() const;

 private:
  std::vector<double> logarithms_;
};

/// What a profile's spread is told by, collected while it is measured.
struct Variations {
  Variation passes;      ///< all tasks of a codec, from pass to pass
  Variation runs;        ///< core time of the same transfers, by new threads each time
  Variation links;       ///< large messages
  Variation iterations;  ///< of one run

  /// The spread of the profile that was measured; of a part that was not measured anew, the base's.
  /// Never less than some per cent, since few values can agree by luck.
  costs::Spread spread(const Options& options) const;
};

}  // namespace hipress::profiler
