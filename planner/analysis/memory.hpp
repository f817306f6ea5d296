#pragma once

#include <cstdint>

#include "casync/plan.hpp"
#include "casync/task_graph.hpp"

namespace hipress::planner {

/// Memory that a plan takes on the node that needs most, beside the gradients themselves.
struct PlanMemory {
  std::int64_t residual_bytes = 0;  ///< what codecs keep from iteration to iteration: fp32 arrays
                                    ///< of every slice that is encoded, per role
  std::int64_t buffer_bytes = 0;    ///< messages: one buffer for each that an executor encodes, or
                                    ///< receives otherwise than into the slice
};

/// Of the graph of a plan with these algorithms, each with the error feedback that is its default.
PlanMemory plan_memory(const casync::TaskGraph& graph,
                       const std::vector<casync::Algorithm>& algorithms);

}  // namespace hipress::planner
