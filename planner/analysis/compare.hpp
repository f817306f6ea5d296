#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/analysis/memory.hpp"
#include "planner/timing/workbench.hpp"

namespace hipress::planner {

/// Figures of a plan on the requested network.
struct PlanFigures {
  double iteration_s = 0;
  double exposed_s = 0;             ///< part of it after the end of computation
  std::int64_t bytes_per_node = 0;  ///< sent by the busiest node
  std::size_t compressed = 0;       ///< number of compressed gradients
  PlanMemory memory;
};

/// Throws io::InputError if the plan's graph is too large.
PlanFigures plan_figures(const Problem& problem, const TimedPlan& plan);

/// A difference between two plans.
struct Difference {
  std::string what;           ///< gradient's name, or "topology", "bulk groups" …
  std::string first, second;  ///< "onebit, K = 16"
  /// Increase of the first plan's time, in seconds, if only this difference is taken over from the
  /// second plan; negative: shorter. None if that plan is impossible.
  std::optional<double> alone_s;
};

struct PlanComparison {
  PlanFigures first, second;
  std::vector<Difference> differences;  ///< plan-wide ones, then by gradient in backward order
  bool estimated = false;               ///< gradients' alone_s are estimates on network port
};

/// Compares two plans for the problem's model and nodes; their iteration_s may be unset.
PlanComparison compare_plans(const Problem& problem, TimedPlan first, TimedPlan second);

/// Rule in words: "64KiB, at most 1ms later, up to 256KiB", or "off".
std::string describe(const casync::Aggregation& rule);

}  // namespace hipress::planner
