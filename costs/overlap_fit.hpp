#pragma once

#include <map>
#include <span>
#include <string>

namespace hipress::costs {

/// How long some work took alone, and while something else ran.
struct BesideSample {
  std::string of_class;  ///< what the work is: "gemm", or any other name
  double alone_s = 0;
  double beside_s = 0;
};

/// How many times as long each class takes beside something else: Σ beside ÷ Σ alone over its
/// samples, so that a long one counts for more than a short one, as it does in a step. Not below 1:
/// what runs beside makes nothing faster. io::RunError for a class that takes no time alone.
std::map<std::string, double> class_factors(std::span<const BesideSample> samples);

}  // namespace hipress::costs
