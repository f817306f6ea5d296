#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/scenario.hpp"

namespace hipress::planner {

/// Lowest link bandwidth that keeps computation busy for a given share of the time.
struct RequiredBandwidth {
  double utilization = 0;  ///< requested share of computation in wall time, 0 to 1
  std::optional<double> bits_per_s;
  /// The bandwidth for machines as fast as the fastest 10 %, and for machines as slow as the
  /// slowest 10 %.
  std::optional<double> bits_per_s_p10, bits_per_s_p90;
  std::string reason = {};  ///< reason if no bandwidth suffices, else empty
};

/// One row per utilisation, each between 0 and 1, for a scenario with at least 2 iterations back to
/// back. Found by bisection on the simulator, to a thousandth; the ends of intervals, to a
/// hundredth. Only `cluster.link.bandwidth` changes. Throws as simulate() does.
std::vector<RequiredBandwidth> required_bandwidths(const sim::Scenario& scenario,
                                                   std::span<const double> utilizations);

}  // namespace hipress::planner
