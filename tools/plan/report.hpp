#pragma once

#include <string>

#include "planner/advice/advice.hpp"
#include "tools/plan/options.hpp"

/// Reports of hipress-plan.
namespace hipress::planner {

/// Splits a verdict into lines, one per clause: the advice, the saving, DDP's time.
std::string in_lines(const std::string& sentence);

/// Prints a line such as "6.12e+05 tokens/s, 41.2 % of the GPUs' peak (MFU)".
void print_throughput(const models::Throughput& speed);

/// Describes the profile, the links and the compute time, and why a default profile is used.
std::string machines_of(const PreparedRequest& prepared, const Problem& problem);

/// Prints a summary of the plan on stdout, in one line.
void print_report(const Options& options, const Problem& problem, const casync::Plan& plan);

/// Prints the iteration times on stdout.
void print_table(const Options& options, const Problem& problem, const costs::Profile& profile,
                 const Comparison& comparison);

}  // namespace hipress::planner
