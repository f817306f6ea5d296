#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "planner/advice/analysis.hpp"
#include "planner/advice/break_even_point.hpp"

/// What hipress-plan prints of passes, and of what was asked about a plan.
namespace hipress::planner {

/// The passes' names and what each leaves better.
void print_passes(std::ostream& out);

/// For people: passes, robust choice, explanation and comparison, as far as there are any.
void print_analysis(std::ostream& out, const AnalysisOptions& options, const Problem& problem,
                    const Analysis& analysis);

/// Where the verdict turns, and the curve.
void print_break_even(std::ostream& out, const BreakEvenPoint& point, double tolerance);

/// Advice, a line a sentence.
void print_in_words(std::ostream& out, const std::vector<std::string>& sentences);

}  // namespace hipress::planner
