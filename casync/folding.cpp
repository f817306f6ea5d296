#include "casync/folding.hpp"

#include "casync/layout.hpp"
#include "casync/strategy.hpp"

namespace hipress::casync {
namespace {

enum class End : std::uint8_t { kFirst, kLast };

/// Slices shorten from the first to the last.
models::Model with_equal_slices(models::Model model, const Plan& plan, End end) {
  const Layout layout = make_layout(model, plan);
  for (std::size_t g = 0; g < model.gradients.size(); ++g) {
    if (layout.is_group(layout.unit_of[g])) continue;  // a group's slices are equal already
    const std::int64_t partitions = layout.units[g].partitions;
    std::int64_t& elements = model.gradients[g].elements;
    elements =
        partitions * slice(elements, partitions, end == End::kFirst ? 0 : partitions - 1).elements;
  }
  return model;
}

}  // namespace

Foldability foldable(const models::Model& model, const Plan& plan) {
  if (!plan.pipelining) return {Foldability::kImpossible, "the plan does without pipelining"};
  if (plan.batch.threshold_bytes > 0) return {Foldability::kImpossible, "the plan has batches"};
  Foldability verdict;
  const Layout layout = make_layout(model, plan);
  for (std::uint32_t u = 0; u < layout.units.size(); ++u) {
    const Unit& unit = layout.units[u];
    if (unit.members.empty()) continue;
    if (unit.strategy->form == Strategy::Form::kRawAndWhole) continue;  // all nodes do the same
    const std::int64_t partitions = unit.partitions;
    const std::string what = (layout.is_group(u) ? "group '" : "gradient '") + unit.name + "'";
    if (partitions % plan.nodes != 0) {
      return {Foldability::kImpossible, what + " has " + std::to_string(partitions) +
                                            " partitions, not a multiple of " +
                                            std::to_string(plan.nodes)};
    }
    if (verdict.kind == Foldability::kExact &&
        partitions * slice(unit.elements, partitions, 0).elements != unit.elements) {
      verdict = {Foldability::kBounded,
                 "the " + std::to_string(partitions) + " slices of " + what + " are not equal"};
    }
  }
  return verdict;
}

models::Model with_longest_slices(const models::Model& model, const Plan& plan) {
  return with_equal_slices(model, plan, End::kFirst);
}

models::Model with_shortest_slices(const models::Model& model, const Plan& plan) {
  return with_equal_slices(model, plan, End::kLast);
}

}  // namespace hipress::casync
