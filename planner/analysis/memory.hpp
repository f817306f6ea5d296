#pragma once

#include <cstdint>

#include "casync/graph_builder.hpp"
#include "casync/plan.hpp"
#include "models/model.hpp"

namespace hipress::planner {

/// Memory that a plan takes on the node that needs most, beside the gradients themselves.
struct PlanMemory {
  std::int64_t residual_bytes = 0;  ///< what codecs keep from iteration to iteration: fp32 arrays
                                    ///< of every slice that is encoded, per role
  std::int64_t buffer_bytes = 0;    ///< messages (casync::Buffer)
};

/// Of a plan, with the error feedback that is each algorithm's default. Throws as casync::expand().
PlanMemory plan_memory(const models::Model& model, const casync::Plan& plan,
                       casync::Folding folding);

}  // namespace hipress::planner
