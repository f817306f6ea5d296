#include "planner/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "io/error.hpp"
#include "io/suggestion.hpp"
#include "kernels/codec.hpp"
#include "planner/choices.hpp"
#include "planner/exhaustive.hpp"
#include "planner/greedy.hpp"
#include "planner/secopa.hpp"
#include "planner/timeline_search.hpp"

namespace hipress::planner {
namespace {

constexpr std::array kSearches = {
    SearchRow{"secopa", "each gradient alone, by the cost model published with SeCoPa",
              search_secopa},
    SearchRow{"greedy", "one gradient after the other, by the simulated timeline: a baseline",
              search_greedy, true},
    SearchRow{"timeline", "everything together, by the simulated iteration time", search_timeline,
              true, true},
    SearchRow{"exhaustive", "the proven best of a small problem: raw or compressed, K = 1 or N",
              search_exhaustive, true, true, exhaustive_choices},
};

}  // namespace

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

Choices choices_of(const Problem& problem) {
  return problem.choices ? problem.choices(problem) : make_choices(problem);
}

std::vector<std::string> strategies_of(const Problem& problem) {
  if (problem.strategy == "best") return {"ps", "ring"};
  return {problem.strategy};
}

std::string search_names() {
  std::string names;
  for (const SearchRow& row : kSearches)
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

const std::string& first_lossy(const std::vector<std::string>& names) {
  const auto lossy = std::find_if(names.begin(), names.end(), [](const std::string& name) {
    return !kernels::make_codec(name)->traits().half_precision;
  });
  return lossy == names.end() ? names.front() : *lossy;
}

casync::Algorithm algorithm(const std::string& name) {
  const std::shared_ptr<const kernels::Codec> codec = kernels::make_codec(name);
  return {name, [codec](std::int64_t elements) { return codec->encoded_bytes(elements); },
          codec->traits().half_precision};
}

}  // namespace hipress::planner
