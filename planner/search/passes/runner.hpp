#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/search/passes/pass.hpp"

namespace hipress::planner {

/// Report on one pass.
struct PassReport {
  std::string name;
  double seconds = 0;  ///< duration of the pass
  double iteration_before_s = 0, iteration_after_s = 0;
  Ceiling ceiling = {};  ///< ceiling that the pass had to keep
  bool changed = false;
};

struct PolishedPlan {
  TimedPlan plan;
  std::vector<PassReport> reports;    ///< one per pass that ran
  std::vector<std::string> warnings;  ///< one per change that was undone
};

/// Runs `rows` in order, without those named in `disabled`, within Problem::limits. A resulting
/// plan that exceeds PassContext::ceiling() is undone, and a warning names the pass. Throws
/// std::logic_error that names the pass if its plan does not pass verify().
PolishedPlan run_passes(const Problem& problem, const TimedPlan& plan,
                        const std::vector<std::string>& disabled, const Rivals& rivals = {},
                        std::span<const Pass> rows = passes());

/// Parses "scheme,more_accurate". For an unknown pass, io::InputError proposes a known one.
std::vector<std::string> parse_pass_names(const std::string& text);

/// Reason why the plan is invalid for the problem: impossible decisions, algorithms, K or groups,
/// or a graph that casync::check() refuses. Empty if valid. Large graphs are not checked.
std::string verify(const Problem& problem, const casync::Plan& plan);

}  // namespace hipress::planner
