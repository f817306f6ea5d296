#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/search/passes/pass.hpp"

namespace hipress::planner {

/// What a pass did.
struct PassReport {
  std::string name;
  double seconds = 0;  ///< that it took
  double iteration_before_s = 0, iteration_after_s = 0;
  Ceiling ceiling = {};  ///< that the pass had to keep to
  bool changed = false;
};

struct PolishedPlan {
  TimedPlan plan;
  std::vector<PassReport> reports;    ///< of the passes that ran
  std::vector<std::string> warnings;  ///< of changes that were undone
};

/// Runs `rows` in their order but for those named in `disabled`, within Problem::limits, and
/// verifies each one's plan: verify(), and that it is within PassContext::ceiling(); else it is
/// undone and a warning names the pass. std::logic_error that names a pass whose plan is
/// impossible.
PolishedPlan run_passes(const Problem& problem, const TimedPlan& plan,
                        const std::vector<std::string>& disabled, const Rivals& rivals = {},
                        std::span<const Pass> rows = passes());

/// "scheme,more_accurate" as names of passes; io::InputError that proposes one for unknown names.
std::vector<std::string> parse_pass_names(const std::string& text);

/// What is wrong with a plan for the problem, or empty: impossible decisions, algorithms or K,
/// groups that do not fit, or a graph that casync::check() refuses. The graph is checked only where
/// it is small enough.
std::string verify(const Problem& problem, const casync::Plan& plan);

}  // namespace hipress::planner
