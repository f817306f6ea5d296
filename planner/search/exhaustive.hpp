#pragma once

#include <cstdint>

#include "planner/choices/choices.hpp"
#include "planner/problem/problem.hpp"
#include "planner/problem/search_result.hpp"
#include "planner/timing/evaluator.hpp"

namespace hipress::planner {

/// The most plans that an exhaustive search takes on: 12 gradients of 8 options each, 6.9e10.
inline constexpr double kMaxPlans = 68719476736.0;

/// What an exhaustive search chooses from: every gradient raw or with one of the problem's
/// algorithms, whole (K = 1) or a slice for every node (K = N); nothing grouped. With three
/// algorithms that is 8 options per gradient.
Choices exhaustive_choices(const Problem& problem);

/// How many plans there are in an option set.
double count_plans(const Choices& choices);

/// The best plan of an option set, and how it was found.
struct Optimum {
  Candidate candidate;
  double iteration_s = 0;
  std::int64_t simulated = 0;  ///< plans
  std::int64_t bounded = 0;    ///< parts of the option set: prefixes, or linear programs
  bool proven = true;          ///< false: it was interrupted, and this is the best until then
};

/// Finds the plan of `choices` that the simulator calls the fastest, with the network of
/// Problem::machines, by branch and bound: parts of the option set whose lower bound is not below
/// the best plan so far are left out. On network port, where the scheme has neither bulk groups nor
/// batches, parts are prefixes (prefix_search.hpp). Elsewhere the linear program of bound/bound.hpp
/// bounds them. Of equally fast plans the first that is met is taken, always the same one.
/// Limits::interrupted ends it. io::InputError for more than kMaxPlans plans, with an estimate of
/// the time that they would take.
Optimum find_optimum(const Problem& problem, const Choices& choices);

/// The search "exhaustive": the optimum of exhaustive_choices(). std::invalid_argument without
/// Problem::machines.
SearchResult search_exhaustive(const Problem& problem);

}  // namespace hipress::planner
