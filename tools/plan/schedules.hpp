#pragma once

#include <iosfwd>

#include "requests/hooks.hpp"
#include "tools/plan/options.hpp"

namespace hipress::planner {

/// The schedules that a request compares, what frameworks do with the job, and the plan's memory.
void print_schedules(std::ostream& out, const requests::Planned& planned);

/// Answers how much bandwidth a job needs, and prints it.
void run_bandwidths(const Options& options, const requests::Hooks& hooks);

}  // namespace hipress::planner
