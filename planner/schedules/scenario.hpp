#pragma once

#include "planner/problem/problem.hpp"
#include "sim/scenario.hpp"

namespace hipress::planner {

/// A scenario for a plan of the problem, as its schedule repeats it.
sim::Scenario scenario_of(const Problem& problem, casync::Plan plan);

}  // namespace hipress::planner
