#pragma once

#include <optional>
#include <string>

#include "planner/timing/workbench.hpp"
#include "plans/plan_file.hpp"

namespace hipress::planner {

/// Density above which a plan that gathers sparse messages is slower than with dense gradients.
struct BreakEvenDensity {
  /// Unset if gathering is faster at every density, if sending dense is, or if unknown.
  std::optional<plans::DenseFallback> dense;
  std::string diagnostic = {};  ///< reason if unknown, else empty
};

/// Break-even of a plan whose topology gathers messages; unset for other topologies, and for plans
/// without sparse gradients. Dense gradients are raw, or in half precision if the problem's
/// algorithms include it, with the fastest number of partitions. The density is found by bisection
/// of its logarithm, on simulated times. If it is unknown, BreakEvenDensity::diagnostic gives the
/// reason: for example, a user's program has no parameter kernels::kDensity.
std::optional<BreakEvenDensity> break_even_density(const Problem& problem, const TimedPlan& plan);

}  // namespace hipress::planner
