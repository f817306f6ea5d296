#include "planner/problem/accuracy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "io/error.hpp"
#include "io/quantity.hpp"
#include "kernels/codec/algorithm_list.hpp"
#include "kernels/codec/codec.hpp"

namespace hipress::planner {
namespace {

constexpr std::string_view kRawName = "none";

std::string_view without_parameters(std::string_view name) {
  return name.substr(0, name.find('('));
}

std::optional<int> own_place(const std::map<std::string, int>& places, std::string_view name) {
  for (const std::string_view key : {name, without_parameters(name)}) {
    if (const auto found = places.find(std::string(key)); found != places.end()) {
      return found->second;
    }
  }
  return std::nullopt;
}

std::optional<int> built_in_place(std::string_view name) {
  if (name == kRawName) return 0;
  const kernels::AlgorithmRow* const row = kernels::find_algorithm(name);
  return row != nullptr ? std::optional(row->coarseness) : std::nullopt;
}

/// Rank of "powersgd(rank=4)", or the default for "powersgd"; 0 for algorithms without a rank.
int rank_of(std::string_view name) {
  return static_cast<int>(kernels::parameter_value(name, "rank").value_or(0));
}

int parse_place(const std::string& text) {
  const std::optional<int> rank = built_in_place(text);
  if (rank && *rank >= kernels::kFinest) return *rank;
  return static_cast<int>(io::parse_integer(text, "place", kernels::kFinest, kernels::kCoarsest));
}

}  // namespace

int AccuracyOrder::coarseness(std::string_view name) const {
  if (const std::optional<int> place = own_place(places, name)) return *place;
  if (const std::optional<int> place = built_in_place(name)) return *place;
  if (kernels::program_file(name)) return kernels::kCoarsest;
  throw std::invalid_argument(
      fmt::format("the coarseness of {} is unknown; known are {},{}, and programs (x.pse)",
                  io::quote(name), kRawName, kernels::algorithm_names()));
}

Coarseness AccuracyOrder::given_up(std::string_view name, int encodings) const {
  const int place = coarseness(name);
  return {.place = place, .encodings = place > 0 ? encodings : 0, .negative_rank = -rank_of(name)};
}

bool AccuracyOrder::is_assumed(std::string_view name) const {
  return kernels::program_file(name) && !own_place(places, name) && !built_in_place(name);
}

std::vector<std::string> AccuracyOrder::not_coarser(const std::vector<std::string>& algorithms,
                                                    std::string_view coarsest) const {
  const Coarseness limit = given_up(coarsest);
  const bool has_rank = coarsest.find('(') != std::string_view::npos && limit.negative_rank < 0;
  std::vector<std::string> kept;
  for (const std::string& name : algorithms) {
    const Coarseness one = given_up(name);
    const bool less_rank = has_rank && one.negative_rank < 0 && one > limit;
    if (one.place <= limit.place && !less_rank) kept.push_back(name);
  }
  return kept;
}

AccuracyOrder parse_accuracy(const std::vector<std::string>& texts) {
  AccuracyOrder order;
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');  // parameters contain '=', too
    try {
      if (equals == std::string::npos || equals == 0) throw io::InputError("there is no place");
      order.places[text.substr(0, equals)] = parse_place(text.substr(equals + 1));
    } catch (const io::InputError& error) {
      throw io::InputError(
          fmt::format("`accuracy` {}: {}; give an algorithm, and one that is as coarse or a place "
                      "from {} to {}: tern.pse=terngrad, tern.pse=2",
                      io::quote(text), error.what(), kernels::kFinest, kernels::kCoarsest));
    }
  }
  return order;
}

std::string describe_accuracy_order() {
  std::string text;
  for (int place = 0; place <= kernels::kCoarsest; ++place) {
    std::vector<std::string_view> names;
    if (place == 0) names.push_back(kRawName);
    for (const kernels::AlgorithmRow& row : kernels::algorithms()) {
      if (row.coarseness == place) names.push_back(row.name);
    }
    text += fmt::format("{}{}", place == 0 ? "" : " < ", fmt::join(names, ", "));
  }
  return text;
}

}  // namespace hipress::planner
