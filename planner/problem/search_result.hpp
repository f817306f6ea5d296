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
  std::vector<std::string> diagnostics;  ///< sentences for the user: what was interpolated,
                                         ///< assumed, left out
  std::int64_t evaluations = 0;          ///< number of simulated plans
  sim::TransferOrder transfer_order = sim::TransferOrder::kReady;  ///< order it was searched with
  struct Finalist {
    casync::Plan plan;
    sim::TransferOrder transfer_order = sim::TransferOrder::kReady;
  };
  std::vector<Finalist> finalists = {};  ///< runners-up, the best first
  bool complete = true;                  ///< false: interrupted; the plan is the best until then
  double lower_bound_s = 0;              ///< lower bound for the search's option set; 0: unknown
};

}  // namespace hipress::planner
