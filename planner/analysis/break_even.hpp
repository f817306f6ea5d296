#pragma once

#include <optional>

#include "planner/timing/workbench.hpp"
#include "plans/plan_file.hpp"

namespace hipress::planner {

/// From which density on a plan whose topology gathers sparse messages is slower than one that
/// sends the same gradients dense: raw, or in half precision where the problem's algorithms allow
/// it, with that number of partitions that is fastest. Found by bisection of the density's
/// logarithm, on simulated times; costs of kernels are interpolated between the densities that the
/// profile has (costs/density.hpp). None for other topologies and plans without sparse gradients,
/// where one of the two is faster at every density, and where plans cannot be simulated.
/// io::InputError if the profile lacks an algorithm.
std::optional<plans::DenseFallback> dense_fallback(const Problem& problem, const TimedPlan& plan);

}  // namespace hipress::planner
