#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "casync/plan.hpp"
#include "sim/simulator.hpp"

namespace hipress::planner {

/// A plan, with diagnostics and statistics of its search.
struct SearchResult {
  casync::Plan plan;
  /// Sentences for the user on interpolated costs, assumptions and omissions.
  std::vector<std::string> diagnostics;
  std::int64_t evaluations = 0;  ///< number of simulated plans
  /// Transfer order for which the plan was searched.
  sim::TransferOrder transfer_order = sim::TransferOrder::kReady;
  struct Finalist {
    casync::Plan plan;
    sim::TransferOrder transfer_order = sim::TransferOrder::kReady;
  };
  std::vector<Finalist> finalists = {};  ///< runners-up, the best first
  /// False: the search was interrupted, and the plan is the best that it had found.
  bool complete = true;
  double lower_bound_s = 0;  ///< lower bound for the search's option set; 0: unknown
};

}  // namespace hipress::planner
