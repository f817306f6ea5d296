#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/scenario.hpp"

namespace hipress::planner {

/// Lowest link bandwidth with which computation takes a given share of the time.
struct RequiredBandwidth {
  double utilization = 0;  ///< requested share of computation in the wall time, 0 to 1
  std::optional<double> bits_per_s;
  /// Bandwidth for the fastest 10 % of machines, and for the slowest 10 %.
  std::optional<double> bits_per_s_p10, bits_per_s_p90;
  std::string reason = {};  ///< reason if no bandwidth suffices, else empty
};

/// Required bandwidths of a scenario, one row per utilisation, each between 0 and 1. The scenario
/// must have at least 2 iterations in sequence. Each bandwidth is found by bisection with the
/// simulator, to a precision of 0.1 %; the ends of intervals, of 1 %. Only `cluster.link.bandwidth`
/// is changed. Throws as simulate() does.
std::vector<RequiredBandwidth> required_bandwidths(const sim::Scenario& scenario,
                                                   std::span<const double> utilizations);

}  // namespace hipress::planner
