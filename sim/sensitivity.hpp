#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "models/bound_by.hpp"
#include "sim/scenario.hpp"

namespace hipress::sim {

/// A property that could be 10 % better. To add one, add a row to improvements().
struct Improvement {
  std::string_view name;  ///< "bandwidth"
  std::string_view help;  ///< meaning of "10 % better"
  void (*apply)(Scenario& scenario);
};
std::span<const Improvement> improvements();

/// Effect of an improvement on the iteration time.
struct Sensitivity {
  std::string_view name;
  Picoseconds iteration{};  ///< time with this improvement alone
  Picoseconds change{};  ///< difference from the unchanged iteration; negative if it helps. Can be
                         ///< positive: a faster part reorders tasks (Graham's anomalies, 1969)
};

/// Iteration time with each improvement, in the order of improvements(); runs one simulation each.
/// `graph` and `iteration` are those of the unchanged scenario.
std::vector<Sensitivity> sensitivities(const Scenario& scenario, const casync::TaskGraph& graph,
                                       Picoseconds iteration);

/// Share of the iteration that is saved if one part has twice the speed: computation, network,
/// codecs and merges, or the CPU's part of transfers. Four simulations. Negative savings count as
/// 0.
std::vector<models::Gain> gains(const Scenario& scenario, const casync::TaskGraph& graph,
                                Picoseconds iteration);

}  // namespace hipress::sim
