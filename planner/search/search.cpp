#include "planner/search/search.hpp"

#include <fmt/format.h>

#include <array>

#include "io/error.hpp"
#include "io/suggestion.hpp"
#include "planner/rules/secopa.hpp"
#include "planner/search/fragments.hpp"
#include "planner/search/greedy.hpp"
#include "planner/search/shards.hpp"
#include "planner/search/timeline_search.hpp"

namespace hipress::planner {
namespace {

constexpr std::array kSearches = {
    SearchRow{.name = "secopa",
              .help = "each gradient alone, by the cost model published with SeCoPa",
              .search = search_secopa},
    SearchRow{.name = "greedy",
              .help = "one gradient after the other, by the simulated timeline: a baseline",
              .search = search_greedy,
              .simulates = true},
    SearchRow{.name = "timeline",
              .help = "everything together, by the simulated iteration time",
              .search = search_timeline,
              .simulates = true,
              .optimises = true},
};

/// Searches for schedules other than ddp; users cannot name them.
constexpr SearchRow kFragments = {.name = "fragments",
                                  .help = "fragment by fragment, by the simulated period",
                                  .search = search_fragments,
                                  .simulates = true,
                                  .optimises = true,
                                  .has_options = false,
                                  .others = other_fragments};
constexpr SearchRow kShards = {.name = "shards",
                               .help = "layer by layer, by the simulated step",
                               .search = search_shards,
                               .simulates = true,
                               .optimises = true,
                               .has_options = false,
                               .others = other_shards};

}  // namespace

const SearchRow& search_for(const casync::Schedule& schedule, std::string_view name) {
  switch (kind_of(schedule)) {
    case JobKind::kLocalUpdates:
      return kFragments;
    case JobKind::kSharding:
      return kShards;
    case JobKind::kAveraging:
      break;
  }
  return find_search(name);
}

std::span<const SearchRow> searches() { return kSearches; }

const SearchRow& find_search(std::string_view name) {
  std::vector<std::string_view> names;
  for (const SearchRow& row : kSearches) {
    if (row.name == name) return row;
    names.push_back(row.name);
  }
  throw io::InputError(
      fmt::format("unknown search {}{}", io::quote(name), io::suggestion(name, names)));
}

std::string search_names() {
  std::string names;
  for (const SearchRow& row : kSearches)
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

}  // namespace hipress::planner
