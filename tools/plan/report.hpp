#pragma once

#include <string>

#include "planner/advice/advice.hpp"
#include "tools/plan/options.hpp"

/// What hipress-plan prints.
namespace hipress::planner {

/// A verdict's clauses, a line each: what is advised, what that saves, and what DDP takes.
std::string in_lines(const std::string& sentence);

/// Profile, links and compute time, and why this profile.
std::string machines_of(const PreparedRequest& prepared, const Problem& problem);

/// One line on stdout: what was planned.
void print_report(const Options& options, const Problem& problem, const casync::Plan& plan);

/// The iteration times on stdout.
void print_table(const Options& options, const Problem& problem, const costs::Profile& profile,
                 const Comparison& comparison);

}  // namespace hipress::planner
