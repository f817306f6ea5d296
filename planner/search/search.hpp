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
  /// Runs until Limits::budget_s or evaluations are used, or Limits::interrupted. Passes polish its
  /// plan, which must not be worse than any baseline.
  bool optimises = false;
  bool has_options = true;  ///< has an option set, for passes, explanations and the general bound
  /// Plans that differ from `plan` only in the unit decided together with the gradient (its layer,
  /// its fragment). Set for searches without an option set.
  std::vector<casync::Plan> (*others)(const Problem& problem, const casync::Plan& plan,
                                      std::uint32_t gradient) = nullptr;
};

std::span<const SearchRow> searches();

/// Search for a schedule: the row `name` of searches() if every step averages all gradients, else
/// the schedule's own. Throws io::InputError as find_search() does.
const SearchRow& search_for(const casync::Schedule& schedule, std::string_view name);

/// The row with that name; throws io::InputError that lists the names.
const SearchRow& find_search(std::string_view name);

/// Names of all searches with commas between them, for messages and help.
std::string search_names();

}  // namespace hipress::planner
