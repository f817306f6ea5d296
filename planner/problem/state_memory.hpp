#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "casync/plan.hpp"
#include "models/model.hpp"
#include "planner/problem/problem.hpp"

namespace hipress::planner {

/// The row of optimizers() whose state counts as memory if the user names none.
inline constexpr std::string_view kUsualOptimizer = "adamw";

/// What an optimizer keeps for each parameter, beside it.
struct OptimizerRow {
  std::string_view name;
  std::int64_t bytes = 0;  ///< of state
  std::string_view help;
};

/// sgd, momentum, adamw …: adding one is one row.
const std::vector<OptimizerRow>& optimizers();

/// The row of that name; io::InputError that lists the names.
const OptimizerRow& find_optimizer(std::string_view name);

/// Memory that training takes on each GPU, without activations, which no model file tells.
struct StateMemory {
  std::int64_t parameters = 0;  ///< as the model stores them, or this GPU's shards
  std::int64_t gradients = 0;   ///< the same
  std::int64_t optimizer =
      0;                      ///< its state, with fp32 parameters of those stored in half precision
  std::int64_t gathered = 0;  ///< layers that are whole at a time, the most of any in a row
  std::int64_t reductions = 0;  ///< gradients of layers that wait to be reduced
  std::int64_t residuals = 0;   ///< what codecs keep of gradients from step to step
  std::int64_t total() const {
    return parameters + gradients + optimizer + gathered + reductions + residuals;
  }
};

/// The memory that a plan's schedule needs on a GPU. Under a sharded schedule a GPU holds shards,
/// at most in_flight neighbouring layers whole (all of them, if they stay whole after forward), and
/// the gradients of two layers: the one that backward makes and the one that is reduced. Whole
/// parameters, and gradients that backward makes, have two bytes where gathers are casts; gradients
/// that are reduced, where reductions are. Under
/// other schedules everything is whole on each GPU. Local updates add the weights that all nodes
/// have in common and the momentum of these weights, 8 bytes a parameter.
StateMemory state_memory(const models::Model& model, const casync::Plan& plan,
                         const OptimizerRow& optimizer);

/// Memory of a GPU for a plan's state, beside its activations; negative: not even for these.
inline std::int64_t room_of(const Problem& problem) {
  const bool limited = problem.memory_bytes < INT64_MAX;
  return limited ? problem.memory_bytes - problem.activation_bytes : INT64_MAX;
}

/// True if the plan's state fits into the memory of a GPU.
inline bool fits(const Problem& problem, const casync::Plan& plan) {
  const std::int64_t room = room_of(problem);
  return room == INT64_MAX ||
         state_memory(problem.model, plan, find_optimizer(problem.optimizer)).total() <= room;
}

/// The memory that the plan needs with the problem's optimizer.
inline StateMemory memory_of(const Problem& problem, const casync::Plan& plan) {
  return state_memory(problem.model, plan, find_optimizer(problem.optimizer));
}

}  // namespace hipress::planner
