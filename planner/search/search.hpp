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
  bool simulates = false;  ///< requires Problem::machines
  /// True: runs until Limits::budget_s or evaluations are used up, or until Limits::interrupted.
  /// Passes polish its plan, which must not be slower than any baseline.
  bool optimises = false;
  /// True: has an option set, which passes, explanations and the general bound use.
  bool has_options = true;
  /// Plans that differ from `plan` only in the unit that is decided together with the gradient: its
  /// layer or fragment. Null for searches with an option set.
  std::vector<casync::Plan> (*others)(const Problem& problem, const casync::Plan& plan,
                                      std::uint32_t gradient) = nullptr;
};

std::span<const SearchRow> searches();

/// Search for a schedule: the row `name` of searches() if every step averages all gradients,
/// otherwise the schedule's own search. Throws io::InputError as find_search() does.
const SearchRow& search_for(const casync::Schedule& schedule, std::string_view name);

/// The row with that name; throws io::InputError that lists the names.
const SearchRow& find_search(std::string_view name);

/// Names of all searches, separated by commas, for messages and help.
std::string search_names();

}  // namespace hipress::planner
