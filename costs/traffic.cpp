#include "costs/traffic.hpp"

namespace hipress::costs {

std::optional<Traffic> least_traffic(const std::string& algorithm) {
  const kernels::AlgorithmRow* const row = kernels::find_algorithm(algorithm);
  return row != nullptr ? std::optional(row->traffic) : std::nullopt;
}

double share_of_bandwidth(const Curve& work, double bytes_per_element, double bandwidth) {
  return bytes_per_element * static_cast<double>(kLargeSlice) / work(kLargeSlice) / bandwidth;
}

}  // namespace hipress::costs
