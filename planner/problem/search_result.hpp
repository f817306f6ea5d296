#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "casync/plan.hpp"
#include "sim/simulator.hpp"

namespace hipress::planner {

/// A plan and what its search has to say about it.
struct SearchResult {
  casync::Plan plan;
  std::vector<std::string> diagnostics;  ///< for the user: what was interpolated, assumed, left out
  std::int64_t evaluations = 0;          ///< plans that were simulated
  sim::TransferOrder transfer_order = sim::TransferOrder::kReady;  ///< that the plan is made for
  struct Finalist {
    casync::Plan plan;
    sim::TransferOrder transfer_order = sim::TransferOrder::kReady;
  };
  std::vector<Finalist> finalists = {};  ///< other plans that were nearly as good, the best first
  bool complete = true;      ///< false: it was interrupted, and this is the best until then
  double lower_bound_s = 0;  ///< of all plans of its option set; 0: the search knows none
  bool proven = false;       ///< no other plan of the search's option set takes less time
};

}  // namespace hipress::planner
