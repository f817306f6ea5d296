#pragma once

#include <optional>
#include <string>

#include "planner/timing/workbench.hpp"
#include "plans/plan_file.hpp"

namespace hipress::planner {

/// Density above which a plan that gathers sparse messages is slower than one that sends the same
/// gradients dense.
struct BreakEvenDensity {
  std::optional<plans::DenseFallback> dense;  ///< none: one of the two is faster at every density
  std::string diagnostic = {};                ///< reason if unknown, else empty
};

/// Break-even of a plan whose topology gathers messages. None for other topologies, and for plans
/// without sparse gradients. Dense gradients are raw, or in half precision if the problem's
/// algorithms include it, with the fastest number of partitions. The density is found by bisection
/// of its logarithm, on simulated times. BreakEvenDensity::diagnostic gives the reason if it is
/// unknown: for example, a user's program has no parameter kernels::kDensity.
std::optional<BreakEvenDensity> break_even_density(const Problem& problem, const TimedPlan& plan);

}  // namespace hipress::planner
