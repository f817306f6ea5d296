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
  double exposed_s = 0;             ///< exposed communication, after the end of computation
  std::int64_t bytes_per_node = 0;  ///< sent by the busiest node
  std::size_t compressed = 0;       ///< number of compressed gradients
  PlanMemory memory;
};

/// Simulates the plan. Throws io::InputError if its graph is too large.
PlanFigures plan_figures(const Problem& problem, const TimedPlan& plan);

/// A difference between two plans.
struct Difference {
  std::string what;           ///< gradient's name, or "topology", "bulk groups" …
  std::string first, second;  ///< "onebit, K = 16"
  /// Change of the first plan's time, in seconds, if it takes over only this difference from the
  /// second plan; negative: shorter. Unset if that plan is impossible.
  std::optional<double> alone_s;
};

struct PlanComparison {
  PlanFigures first, second;
  std::vector<Difference> differences;  ///< plan-wide ones, then by gradient in backward order
  bool estimated = false;  ///< the gradients' alone_s are estimates with the network model `port`
};

/// Compares two plans for the problem's model and nodes. Their iteration_s may be unset.
PlanComparison compare_plans(const Problem& problem, TimedPlan first, TimedPlan second);

/// Describes the rule in words: "64KiB, at most 1ms later, up to 256KiB", or "off".
std::string describe(const casync::Aggregation& rule);

}  // namespace hipress::planner
