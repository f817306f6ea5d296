#include "costs/traffic.hpp"

#include <map>

namespace hipress::costs {

std::optional<Traffic> least_traffic(const std::string& algorithm) {
  // Encode reads 4 bytes and writes the code's bits; error feedback reads and writes the residual
  // (8 more). TernGrad reads twice, since its code needs the minimum and the maximum first. Decode
  // reads the code and writes 4 bytes; decode-and-add reads those 4 bytes as well.
  static const std::map<std::string, Traffic> all = {
      {"onebit", {12.125, 4.125, 8.125}},
      {"tbq", {12.25, 4.25, 8.25}},
      {"terngrad", {8.25, 4.25, 8.25}},
      // 1 % of the entries: dgc reads and writes two arrays of state, graddrop a residual.
      {"dgc", {20.1, 4.7, 0.7}},
      {"graddrop", {12.1, 4.7, 0.7}},
      {"fp16", {6, 6, 10}},
      {"bf16", {6, 6, 10}},
  };
  const auto found = all.find(algorithm);
  return found != all.end() ? std::optional<Traffic>(found->second) : std::nullopt;
}

double share_of_bandwidth(const Curve& work, double bytes_per_element, double bandwidth) {
  return bytes_per_element * static_cast<double>(kLargeSlice) / work(kLargeSlice) / bandwidth;
}

}  // namespace hipress::costs
