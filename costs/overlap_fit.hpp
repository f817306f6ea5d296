#pragma once

#include <map>
#include <span>
#include <string>

namespace hipress::costs {

/// Duration of some work alone, and at the same time as other work.
struct BesideSample {
  std::string of_class;  ///< class of the work, such as "gemm"
  double alone_s = 0;
  double beside_s = 0;
};

/// Slowdown factor per class: the sum of its samples' times beside other work, divided by that of
/// their times alone. So long samples count more, as they do in a step. At least 1, since other
/// work speeds nothing up. Throws io::RunError for a class that takes no time alone.
std::map<std::string, double> class_factors(std::span<const BesideSample> samples);

}  // namespace hipress::costs
