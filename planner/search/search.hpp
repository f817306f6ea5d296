#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "casync/plan.hpp"
#include "planner/problem/problem.hpp"
#include "planner/problem/search_result.hpp"

namespace hipress::planner {

/// One row per search; adding one is one file and one row.
struct SearchRow {
  std::string_view name;
  std::string_view help;
  SearchResult (*search)(const Problem& problem);
  bool simulates = false;  ///< it asks Problem::machines
  /// Passes polish its plan, which is never to be worse than a baseline, and Limits::interrupted
  /// ends it.
  bool optimises = false;
  bool has_budget = false;  ///< it goes on until Limits::budget_s or evaluations are used
  bool has_options = true;  ///< passes, explanations and the general bound know its option set
  /// Without an option set: plans that decide otherwise for what is decided together with a
  /// gradient (its layer, its fragment), all else alike.
  std::vector<casync::Plan> (*others)(const Problem& problem, const casync::Plan& plan,
                                      std::uint32_t gradient) = nullptr;
  /// What it chooses from; null: make_choices().
  Choices (*choices)(const Problem& problem) = nullptr;
};

std::span<const SearchRow> searches();

/// The search for plans of a schedule: the problem's own where every step averages all gradients
/// (`name`, a row of searches()), else the schedule's. io::InputError as find_search().
const SearchRow& search_for(const casync::Schedule& schedule, std::string_view name);

/// The row with that name; io::InputError that lists the names.
const SearchRow& find_search(std::string_view name);

/// "secopa", or several names with commas: for messages and help.
std::string search_names();

}  // namespace hipress::planner
