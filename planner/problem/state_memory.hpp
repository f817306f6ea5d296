#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "casync/plan.hpp"
#include "models/model.hpp"
#include "planner/problem/problem.hpp"

namespace hipress::planner {

/// The row of optimizers() that counts as memory if the user names none.
inline constexpr std::string_view kUsualOptimizer = "adamw";

/// Optimizer state per parameter.
struct OptimizerRow {
  std::string_view name;
  std::int64_t bytes = 0;  ///< state per parameter, in bytes
  std::string_view help;
};

/// Table of optimizers: sgd, momentum, adamw … Adding one is one row.
const std::vector<OptimizerRow>& optimizers();

/// The row of that name; throws io::InputError that lists the names.
const OptimizerRow& find_optimizer(std::string_view name);

/// Memory in bytes that training takes on each GPU, without activations.
struct StateMemory {
  std::int64_t parameters = 0;  ///< in the model's types, or this GPU's shards of them
  std::int64_t gradients = 0;   ///< in the model's types, or this GPU's shards of them
  /// Optimizer state, with the fp32 copies of half-precision parameters.
  std::int64_t optimizer = 0;
  /// Largest sum of the parameters of neighbouring layers that are whole at the same time.
  std::int64_t gathered = 0;
  std::int64_t reductions = 0;  ///< gradients of layers that wait for their reduction
  std::int64_t residuals = 0;   ///< error feedback kept by codecs from step to step
  std::int64_t total() const {
    return parameters + gradients + optimizer + gathered + reductions + residuals;
  }
};

/// State memory of a GPU under the plan's schedule. Under a sharded schedule a GPU holds shards. It
/// also holds at most in_flight neighbouring layers whole (all layers if they stay whole after
/// forward), and the gradients of two layers: the one that backward computes, and the one that is
/// being reduced. Whole parameters, and gradients from backward, take 2 bytes an element if gathers
/// are casts; gradients being reduced take 2 if reductions are. Other schedules hold everything
/// whole on every GPU. Local updates add 8 bytes a parameter: common weights and their momentum.
StateMemory state_memory(const models::Model& model, const casync::Plan& plan,
                         const OptimizerRow& optimizer);

/// GPU memory in bytes for a plan's state beside the activations; negative: the activations alone
/// do not fit.
inline std::int64_t room_of(const Problem& problem) {
  const bool limited = problem.memory_bytes < INT64_MAX;
  return limited ? problem.memory_bytes - problem.activation_bytes : INT64_MAX;
}

inline bool fits(const Problem& problem, const casync::Plan& plan) {
  const std::int64_t room = room_of(problem);
  return room == INT64_MAX ||
         state_memory(problem.model, plan, find_optimizer(problem.optimizer)).total() <= room;
}

inline StateMemory memory_of(const Problem& problem, const casync::Plan& plan) {
  return state_memory(problem.model, plan, find_optimizer(problem.optimizer));
}

}  // namespace hipress::planner
