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
  std::uint32_t gradient = 0;   ///< input index g, or a bulk group's
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
  /// Appends the tasks of one gradient, predecessors before successors, and behind each task the
  /// edges into it.
  void (*expand)(GraphBuilder& builder, const GradientWork& work);
  /// How many that are for each partition that has elements, without making them.
  double (*tasks_per_partition)(double nodes, bool compressed);
  enum class Form : std::uint8_t {
    kAny,
    kWhole,  ///< values are added as they lie, raw or in half precision, and K is 1 whatever the
             ///< plan says
  };
  Form form = Form::kAny;
};

std::span<const Strategy> strategies();

/// The row with that name, in any case ("PS", "ring"); std::invalid_argument that lists the names.
const Strategy& find_strategy(std::string_view name);

/// Expands a plan to the graph of one iteration: on every node Forward, then the gradients'
/// Backward tasks in order of their ready times, and behind them what the strategy says.
/// std::invalid_argument as make_layout(), and for a folded graph of a plan that `foldable` calls
/// impossible.
TaskGraph expand(const models::Model& model, const Plan& plan, Folding folding = Folding::kNone);

/// The graph of that many iterations back to back (at least 1). Forward is then a chain of one task
/// per gradient, the last in the order of backward first, each for the share of forward that its
/// gradient has of backward, or, where the model gives no ready times, of the elements. From the
/// second iteration on it waits until the gradient is synchronised on the node, and Backward until
/// the node has sent what it overwrites. Throws as expand().
TaskGraph expand_back_to_back(const models::Model& model, const Plan& plan, int iterations,
                              Folding folding = Folding::kNone);

void expand_ps(GraphBuilder& builder, const GradientWork& work);
void expand_ring(GraphBuilder& builder, const GradientWork& work);
void expand_allreduce(GraphBuilder& builder, const GradientWork& work);

}  // namespace hipress::casync
