#include "casync/strategy.hpp"

#include <algorithm>
#include <cctype>
#include <stdexcept>

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

std::string names_of(std::span<const Strategy* const> strategies) {
  std::string names;
  for (const Strategy* strategy : strategies) {
    names += (names.empty() ? "" : ", ") + std::string(strategy->name);
  }
  return names;
}

}  // namespace

const char* to_string(Operation operation) {
  return operation == Operation::kMean ? "mean" : "broadcast";
}

std::span<const Strategy* const> strategies() { return rows(); }

Carriers carriers(std::string_view strategy, std::string_view raw_strategy) {
  const Strategy& encoded = find_strategy(strategy);
  if (!raw_strategy.empty()) return {&encoded, &find_strategy(raw_strategy)};
  return {&encoded, encoded.dense.empty() ? &encoded : &find_strategy(encoded.dense)};
}

const Strategy& Carriers::of(const Algorithm* algorithm) const {
  if (algorithm == nullptr || algorithm->is_staged()) return *raw;
  const bool dense = encoded->form == Strategy::Form::kEncoded && algorithm->half_precision;
  return dense ? *raw : *encoded;
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
  if (const Strategy* const found = find(name)) return *found;
  throw std::invalid_argument("unknown topology '" + std::string(name) + "'; known are " +
                              names_of(rows()));
}

}  // namespace hipress::casync
