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

/// For each class, how many times as long it takes beside something else: Σ beside ÷ Σ alone over
/// its samples. Long samples therefore count for more, as they do in a step. At least 1, since
/// nothing gets faster by what runs beside it. io::RunError for a class that takes no time alone.
std::map<std::string, double> class_factors(std::span<const BesideSample> samples);

}  // namespace hipress::costs
