#pragma once

#include <iosfwd>

#include "planner/advice/analysis.hpp"

/// What hipress-plan prints of passes, and of what was asked about a plan.
namespace hipress::planner {

/// The passes' names and what each leaves better.
void print_passes(std::ostream& out);

/// For people: passes, robust choice, explanation and comparison, as far as there are any.
void print_analysis(std::ostream& out, const AnalysisOptions& options, const Problem& problem,
                    const Analysis& analysis);

}  // namespace hipress::planner
