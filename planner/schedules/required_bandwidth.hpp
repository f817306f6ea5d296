#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/scenario.hpp"

namespace hipress::planner {

/// The least bandwidth of the links that keeps computation that busy.
struct RequiredBandwidth {
  double utilization = 0;  ///< computation over wall time that was asked for, 0 to 1
  std::optional<double> bits_per_s;
  /// With machines that are as fast as one in ten, and as slow as one in ten.
  std::optional<double> bits_per_s_p10, bits_per_s_p90;
  std::string reason = {};  ///< why there is none; empty: there is
};

/// One row for each of these utilisations, between 0 and 1, of a scenario with at least 2
/// iterations back to back. Found by bisection on the simulator, to a thousandth; the ends of
/// intervals, to a hundredth. Only `cluster.link.bandwidth` changes. Throws as simulate().
std::vector<RequiredBandwidth> required_bandwidths(const sim::Scenario& scenario,
                                                   std::span<const double> utilizations);

}  // namespace hipress::planner
