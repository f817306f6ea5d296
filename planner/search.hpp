#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "casync/plan.hpp"
#include "costs/profile.hpp"
#include "models/model.hpp"

namespace hipress::planner {

/// What is to be planned.
struct Problem {
  const models::Model& model;
  std::string strategy = "ps";  ///< a row of casync::strategies()
  std::uint32_t nodes = 16;
  std::vector<std::string> algorithms;      ///< the ones a plan may use: "onebit", "tbq(tau=0.25)"
  const costs::Profile* profile = nullptr;  ///< null: the costs published with SeCoPa
};

/// A plan and what its search has to say about it.
struct SearchResult {
  casync::Plan plan;
  std::vector<std::string> remarks;  ///< for the user: what was interpolated, assumed, left out
  std::int64_t evaluations = 0;      ///< plans that were simulated
};

/// One row per search; adding one is one file and one row.
struct SearchRow {
  std::string_view name;
  std::string_view help;
  SearchResult (*search)(const Problem& problem);
};

std::span<const SearchRow> searches();

/// The row with that name; io::InputError that lists the names.
const SearchRow& find_search(std::string_view name);

/// "secopa", or several names with commas: for messages and help.
std::string search_names();

/// The algorithm that a search for lossy compression uses: the first of `names` that is no mere
/// cast to half precision, or the first if all are. `names` must not be empty.
const std::string& first_lossy(const std::vector<std::string>& names);

/// What a plan must know of the algorithm called `name`. std::invalid_argument that lists the
/// algorithms.
casync::Algorithm algorithm(const std::string& name);

}  // namespace hipress::planner
