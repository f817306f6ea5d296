#include "casync/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "io/error.hpp"
#include "io/suggestion.hpp"

namespace hipress::casync {
namespace {

/// Our own rows, and what was registered.
std::vector<const Strategy*>& rows() {
  static std::vector<const Strategy*> rows(own_strategies().begin(), own_strategies().end());
  return rows;
}

bool equal_in_any_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

const Strategy* find(std::string_view name) {
  const auto found = std::ranges::find_if(
      rows(), [&](const Strategy* row) { return equal_in_any_case(row->name, name); });
  return found == rows().end() ? nullptr : *found;
}

/// What carries gradients; the others carry shards.
bool is_of_gradients(const Strategy* row) {
  return row->operation == Operation::kMean || row->operation == Operation::kBroadcast;
}

std::string names_of(std::span<const Strategy* const> strategies) {
  std::string names;
  for (const Strategy* strategy : strategies) {
    names += (names.empty() ? "" : ", ") + std::string(strategy->name);
  }
  return names;
}

}  // namespace

const char* to_string(Operation operation) {
  switch (operation) {
    case Operation::kMean:
      return "mean";
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kReduceScatter:
      return "reduce_scatter";
    case Operation::kGather:
      return "gather";
  }
  return "";
}

std::span<const Strategy* const> strategies() { return rows(); }

Carriers carriers(std::string_view strategy, std::string_view raw_strategy) {
  const Strategy& encoded = find_strategy(strategy);
  if (!raw_strategy.empty()) return {&encoded, &find_strategy(raw_strategy)};
  return {&encoded, encoded.dense.empty() ? &encoded : &find_strategy(encoded.dense)};
}

const Strategy& Carriers::of(const Algorithm* algorithm) const {
  if (algorithm == nullptr || algorithm->is_additive()) return *raw;
  const bool dense = encoded->form == Strategy::Form::kEncoded && algorithm->half_precision;
  return dense ? *raw : *encoded;
}

int Carriers::encodings_of(const Algorithm& algorithm, std::uint32_t nodes) const {
  return algorithm.is_additive() ? 1 : of(&algorithm).encodings_of(nodes);
}

std::vector<const Strategy*> strategies_for(Operation operation) {
  std::vector<const Strategy*> found;
  std::ranges::copy_if(rows(), std::back_inserter(found),
                       [&](const Strategy* row) { return row->operation == operation; });
  return found;
}

std::string strategy_names(Operation operation) { return names_of(strategies_for(operation)); }

StrategyRegistration::StrategyRegistration(const Strategy& strategy) : strategy_(&strategy) {
  if (find(strategy.name)) {
    throw std::invalid_argument("there is a topology '" + std::string(strategy.name) + "' already");
  }
  rows().push_back(strategy_);
}

StrategyRegistration::~StrategyRegistration() { std::erase(rows(), strategy_); }

const Strategy& find_strategy(std::string_view name) {
  const Strategy* const found = find(name);
  if (found != nullptr && is_of_gradients(found)) return *found;
  std::vector<const Strategy*> known;
  std::ranges::copy_if(rows(), std::back_inserter(known), is_of_gradients);
  std::vector<std::string_view> names;
  for (const Strategy* row : known) names.push_back(row->name);
  throw std::invalid_argument(fmt::format("unknown topology {}{}known are {}", io::quote(name),
                                          io::before_known(name, names), names_of(known)));
}

const Strategy& find_strategy(std::string_view carrier, Operation operation) {
  const auto name_by = [&](std::string_view by) {
    return std::string(by) + "_" + to_string(operation);
  };
  const Strategy* const found = find(name_by(carrier));
  if (found != nullptr && found->operation == operation) return *found;
  std::string known(kLibrary);
  for (const Strategy* const row : strategies_for(Operation::kGather)) {
    known += ", " + std::string(row->name.substr(0, row->name.find('_')));
  }
  throw std::invalid_argument("shards travel by " + known + ", not by " + io::quote(carrier));
}

std::string carrier_of_shards(std::string_view text) {
  if (equal_in_any_case(text, kLibrary)) return std::string(kLibrary);
  const std::string_view row = find_strategy(text, Operation::kGather).name;
  return std::string(row.substr(0, row.find('_')));
}

}  // namespace hipress::casync
