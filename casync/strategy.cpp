#include "casync/strategy.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <stdexcept>

#include "casync/folding.hpp"

namespace hipress::casync {
namespace {

constexpr std::array kStrategies{
    Strategy{"ps", "parameter servers co-located with the workers, one per partition", expand_ps},
    Strategy{"ring", "ring all-reduce: partial sums travel N-1 hops, then the mean does",
             expand_ring},
};

bool equal_in_any_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

/// Gradients in the order in which backward completes them; equal ready times keep the input order.
std::vector<std::uint32_t> backward_order(const models::Model& model) {
  std::vector<std::uint32_t> order(model.gradients.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return model.gradients[a].ready_s < model.gradients[b].ready_s;
  });
  return order;
}

}  // namespace

std::span<const Strategy> strategies() { return kStrategies; }

const Strategy& find_strategy(std::string_view name) {
  for (const Strategy& strategy : kStrategies) {
    if (equal_in_any_case(strategy.name, name)) return strategy;
  }
  std::string known;
  for (const Strategy& strategy : kStrategies) {
    known += (known.empty() ? "" : ", ") + std::string(strategy.name);
  }
  throw std::invalid_argument("unknown topology '" + std::string(name) + "'; known are " + known);
}

std::vector<std::vector<TaskId>> add_computation(GraphBuilder& builder,
                                                 const models::Model& model) {
  const std::vector<std::uint32_t> order = backward_order(model);
  std::vector<std::vector<TaskId>> ready(model.gradients.size());
  const std::uint32_t nodes = builder.folded() ? 1 : builder.nodes();
  for (std::uint32_t node = 0; node < nodes; ++node) {
    TaskId previous = builder.add({.amount = from_seconds(model.forward_s).count(), .node = node});
    Picoseconds reached{0};
    for (const std::uint32_t gradient : order) {
      const Picoseconds due = from_seconds(model.gradients[gradient].ready_s);
      const TaskId task = builder.add({.amount = (due - reached).count(),
                                       .gradient = gradient,
                                       .node = node,
                                       .kind = Kind::kBackward});
      builder.edge(previous, task);
      ready[gradient].insert(ready[gradient].end(), builder.nodes() / nodes, task);
      previous = task;
      reached = due;
    }
  }
  return ready;
}

TaskGraph expand(const models::Model& model, const Plan& plan, Folding folding) {
  if (plan.decisions.size() != model.gradients.size()) {
    throw std::invalid_argument("the plan decides " + std::to_string(plan.decisions.size()) +
                                " gradients, the model has " +
                                std::to_string(model.gradients.size()));
  }
  if (plan.nodes == 0) throw std::invalid_argument("a plan needs at least one node");
  const Strategy& strategy = find_strategy(plan.strategy);
  if (folding == Folding::kFolded) {
    const Foldability verdict = foldable(model, plan);
    if (verdict.kind == Foldability::kImpossible) {
      throw std::invalid_argument("the graph cannot be folded: " + verdict.why);
    }
  }
  GraphBuilder builder(plan.nodes, folding);
  std::vector<std::vector<TaskId>> ready = add_computation(builder, model);
  for (std::uint32_t g = 0; g < model.gradients.size(); ++g) {
    const Decision& decision = plan.decisions[g];
    if (decision.partitions < 1) {
      throw std::invalid_argument("gradient '" + model.gradients[g].name +
                                  "': K must be at least 1, got " +
                                  std::to_string(decision.partitions));
    }
    strategy.expand(
        builder,
        {.gradient = g,
         .elements = model.gradients[g].elements,
         .partitions = decision.partitions,
         .algorithm_index = decision.algorithm,
         .algorithm = decision.algorithm == kRaw
                          ? nullptr
                          : &plan.algorithms.at(static_cast<std::size_t>(decision.algorithm)),
         .ready = std::move(ready[g])});
  }
  return std::move(builder).build();
}

}  // namespace hipress::casync
