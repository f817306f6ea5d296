#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/analysis/memory.hpp"
#include "planner/timing/workbench.hpp"

namespace hipress::planner {

/// What a plan comes to on the network asked for.
struct PlanFigures {
  double iteration_s = 0;
  double exposed_s = 0;             ///< of that, after the end of computation
  std::int64_t bytes_per_node = 0;  ///< sent by the node that sends most
  std::size_t compressed = 0;       ///< gradients
  PlanMemory memory;
};

/// io::InputError where the plan's graph is too large.
PlanFigures plan_figures(const Problem& problem, const TimedPlan& plan);

/// One thing in which the second plan differs from the first.
struct Difference {
  std::string what;           ///< a gradient's name, or "topology", "bulk groups" …
  std::string first, second;  ///< "onebit, K = 16"
  /// Seconds that the first plan's iteration takes longer with this of the second's and nothing
  /// else; negative: shorter. None where that cannot be.
  std::optional<double> alone_s;
};

struct PlanComparison {
  PlanFigures first, second;
  std::vector<Difference>
      differences;         ///< of the plan, then of gradients as backward completes them
  bool estimated = false;  ///< what gradients' differences are worth is of network port
};

/// Compares two plans for one problem's model and nodes; their iteration_s need not be known.
PlanComparison compare_plans(const Problem& problem, TimedPlan first, TimedPlan second);

/// "64KiB, at most 1ms later, up to 256KiB", or "off".
std::string describe(const casync::Aggregation& rule);

}  // namespace hipress::planner
