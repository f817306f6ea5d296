#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "planner/search/moves.hpp"
#include "planner/timing/evaluator.hpp"

namespace hipress::planner {

/// What a start is made from.
struct StartContext {
  const Problem& problem;
  const Choices& choices;
  const Neighbourhoods& neighbourhoods;
  Evaluator& evaluator;
  std::uint32_t scheme;               ///< with nothing but a topology
  const std::function<bool()>& stop;  ///< a start that simulates asks it now and then
  std::int64_t& evaluations;
};

/// Plans that a search begins with. Adding one is one function and one row.
struct Start {
  std::string_view name;
  std::string_view help;
  std::vector<Candidate> (*make)(const StartContext& context);
  /// Worth a simulation on the network asked for, however the search's own simulations find it.
  bool for_any_network = false;
};
std::span<const Start> starts();

}  // namespace hipress::planner
