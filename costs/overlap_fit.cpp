#include "costs/overlap_fit.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/error.hpp"

namespace hipress::costs {

std::map<std::string, double> class_factors(std::span<const BesideSample> samples) {
  std::map<std::string, BesideSample> sums;
  for (const BesideSample& sample : samples) {
    BesideSample& sum = sums[sample.of_class];
    sum.alone_s += sample.alone_s;
    sum.beside_s += sample.beside_s;
  }
  std::map<std::string, double> factors;
  for (const auto& [name, sum] : sums) {
    const bool told = sum.alone_s > 0;
    if (!told) {
      throw io::RunError(
          fmt::format("{} took no time alone, so its slowdown beside other work is unknown; "
                      "measure it with more work",
                      name));
    }
    factors[name] = std::max(1.0, sum.beside_s / sum.alone_s);
  }
  return factors;
}

}  // namespace hipress::costs
