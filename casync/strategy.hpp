#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "casync/plan.hpp"
#include "casync/task_graph.hpp"
#include "models/model.hpp"

namespace hipress::casync {

/// One gradient to synchronise, as a strategy sees it.
struct GradientWork {
  std::uint32_t gradient = 0;   ///< input index g
  std::int64_t elements = 0;    ///< m
  std::int32_t partitions = 1;  ///< K
  std::int8_t algorithm_index = kRaw;
  const Algorithm* algorithm = nullptr;  ///< null: raw fp32
  std::vector<TaskId> ready;  ///< per node: the task after which the gradient is complete there
};

/// A way of synchronising. Adding one is one file that defines `expand` and one row in
/// strategies().
struct Strategy {
  std::string_view name;
  std::string_view help;
  /// Appends the tasks of one gradient, predecessors before successors.
  void (*expand)(GraphBuilder& builder, const GradientWork& work);
};

std::span<const Strategy> strategies();

/// The row with that name, in any case ("PS", "ring"); std::invalid_argument that lists the names.
const Strategy& find_strategy(std::string_view name);

/// Expands a plan to the graph of one iteration: on every node Forward, then the gradients'
/// Backward tasks in order of their ready times, and behind them what the strategy says. The plan
/// needs one decision per gradient, and for a folded graph none that `foldable` calls impossible
/// (std::invalid_argument otherwise).
TaskGraph expand(const models::Model& model, const Plan& plan, Folding folding = Folding::kNone);

/// The part of `expand` before the strategy: Forward and Backward of every node (of one, in a
/// folded graph); returns per gradient and node the Backward task.
std::vector<std::vector<TaskId>> add_computation(GraphBuilder& builder, const models::Model& model);

void expand_ps(GraphBuilder& builder, const GradientWork& work);
void expand_ring(GraphBuilder& builder, const GradientWork& work);

}  // namespace hipress::casync
