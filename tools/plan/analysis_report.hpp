#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "planner/advice/analysis.hpp"
#include "planner/advice/break_even_point.hpp"

/// Reports of hipress-plan about passes and about analyses of a plan.
namespace hipress::planner {

/// Prints the passes' names and purposes.
void print_passes(std::ostream& out);

/// Prints, as text, the results of passes, robust choice, explanation and comparison, where there
/// are any.
void print_analysis(std::ostream& out, const AnalysisOptions& options, const Problem& problem,
                    const Analysis& analysis);

/// Prints the break-even point and the curve.
void print_break_even(std::ostream& out, const BreakEvenPoint& point, double tolerance);

/// Prints advice, a sentence per line.
void print_in_words(std::ostream& out, const std::vector<std::string>& sentences);

}  // namespace hipress::planner
