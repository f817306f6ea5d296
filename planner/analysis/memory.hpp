#pragma once

#include <cstdint>

#include "casync/graph_builder.hpp"
#include "casync/plan.hpp"
#include "models/model.hpp"

namespace hipress::planner {

/// Memory of a plan, beside the gradients, on the node that needs most of it.
struct PlanMemory {
  /// State that codecs keep from iteration to iteration, such as residuals.
  std::int64_t residual_bytes = 0;
  std::int64_t buffer_bytes = 0;  ///< messages (casync::Buffer)
};

/// Memory of a plan with each algorithm's default error feedback. Throws as casync::expand() does.
PlanMemory plan_memory(const models::Model& model, const casync::Plan& plan,
                       casync::Folding folding);

}  // namespace hipress::planner
