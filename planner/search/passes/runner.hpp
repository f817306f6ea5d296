#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/search/passes/pass.hpp"

namespace hipress::planner {

/// Record of one pass.
struct PassReport {
  std::string name;
  double seconds = 0;  ///< duration of the pass
  double iteration_before_s = 0, iteration_after_s = 0;
  Ceiling ceiling = {};  ///< ceiling of the pass
  bool changed = false;
};

struct PolishedPlan {
  TimedPlan plan;
  std::vector<PassReport> reports;    ///< one per pass that ran
  std::vector<std::string> warnings;  ///< one per change that was undone
};

/// Runs `rows` in their order within Problem::limits, without those named in `disabled`. Each
/// resulting plan must pass verify() and keep PassContext::ceiling(); otherwise it is undone, and a
/// warning names the pass. Throws std::logic_error that names a pass whose plan is impossible.
PolishedPlan run_passes(const Problem& problem, const TimedPlan& plan,
                        const std::vector<std::string>& disabled, const Rivals& rivals = {},
                        std::span<const Pass> rows = passes());

/// Parses pass names such as "scheme,more_accurate"; throws io::InputError that proposes a known
/// name.
std::vector<std::string> parse_pass_names(const std::string& text);

/// Reason why the plan is invalid for the problem, or empty: impossible decisions, algorithms or K,
/// groups that do not fit, or a graph that casync::check() refuses. Large graphs are not checked.
std::string verify(const Problem& problem, const casync::Plan& plan);

}  // namespace hipress::planner
