#pragma once

#include <optional>
#include <string>

#include "planner/timing/workbench.hpp"
#include "plans/plan_file.hpp"

namespace hipress::planner {

/// From which density on a plan that gathers sparse messages is slower than one that sends the same
/// gradients dense.
struct BreakEvenDensity {
  std::optional<plans::DenseFallback> dense;  ///< none: one of the two is faster at every density
  std::string diagnostic = {};                ///< why it is not known; empty: it is
};

/// The break-even of a plan whose topology gathers messages. None for other topologies, and for
/// plans without sparse gradients. Dense gradients are sent raw, or in half precision where the
/// problem's algorithms allow it, with the fastest number of partitions. The density is found by
/// bisection of its logarithm, on simulated times. BreakEvenDensity::diagnostic says why it is not
/// known: for example, a user's program has no parameter kernels::kDensity.
std::optional<BreakEvenDensity> break_even_density(const Problem& problem, const TimedPlan& plan);

}  // namespace hipress::planner
