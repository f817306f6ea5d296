#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "planner/search/moves.hpp"
#include "planner/timing/evaluator.hpp"

namespace hipress::planner {

/// Input of a start.
struct StartContext {
  const Problem& problem;
  const Choices& choices;
  const Neighbourhoods& neighbourhoods;
  Evaluator& evaluator;
  std::uint32_t scheme;               ///< scheme that sets only the topology
  const std::function<bool()>& stop;  ///< polled by starts that simulate
  std::int64_t& evaluations;
};

/// Source of plans with which a search begins. Adding one is one function and one row.
struct Start {
  std::string_view name;
  std::string_view help;
  std::vector<Candidate> (*make)(const StartContext& context);
  /// True: its plans are simulated on the requested network, however the search ranks them.
  bool for_any_network = false;
};
std::span<const Start> starts();

}  // namespace hipress::planner
