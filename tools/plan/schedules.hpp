#pragma once

#include <iosfwd>

#include "requests/hooks.hpp"
#include "tools/plan/options.hpp"

namespace hipress::planner {

/// Prints the schedules that a request compares, frameworks' baselines, and the memory needed.
void print_schedules(std::ostream& out, const requests::Planned& planned);

/// Computes and prints the bandwidth that a job needs.
void run_bandwidths(const Options& options, const requests::Hooks& hooks);

}  // namespace hipress::planner
