#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "planner/advice/analysis.hpp"
#include "planner/advice/break_even_point.hpp"

/// Reports of hipress-plan about passes and about analyses of plans.
namespace hipress::planner {

void print_passes(std::ostream& out);

/// Prints the results of passes, robust choice, explanation and comparison as text. Omits those
/// that are missing.
void print_analysis(std::ostream& out, const AnalysisOptions& options, const Problem& problem,
                    const Analysis& analysis);

/// Prints the break-even point, and the curve around it.
void print_break_even(std::ostream& out, const BreakEvenPoint& point, double tolerance);

/// Prints the advice, one sentence per line.
void print_in_words(std::ostream& out, const std::vector<std::string>& sentences);

}  // namespace hipress::planner
