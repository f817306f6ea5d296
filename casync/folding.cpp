#include "casync/folding.hpp"

#include <algorithm>

namespace hipress::casync {
namespace {

enum class End : std::uint8_t { kFirst, kLast };

/// Slices shorten from the first to the last.
models::Model with_equal_slices(models::Model model, const Plan& plan, End end) {
  for (std::size_t g = 0; g < model.gradients.size(); ++g) {
    const std::int64_t partitions = plan.decisions[g].partitions;
    std::int64_t& elements = model.gradients[g].elements;
    elements =
        partitions * slice(elements, partitions, end == End::kFirst ? 0 : partitions - 1).elements;
  }
  return model;
}

}  // namespace

Foldability foldable(const models::Model& model, const Plan& plan) {
  Foldability verdict;
  for (std::size_t g = 0; g < model.gradients.size(); ++g) {
    const models::Gradient& gradient = model.gradients[g];
    const std::int64_t partitions = plan.decisions[g].partitions;
    if (partitions % plan.nodes != 0) {
      return {Foldability::kImpossible,
              "gradient '" + gradient.name + "' has " + std::to_string(partitions) +
                  " partitions, not a multiple of " + std::to_string(plan.nodes)};
    }
    if (verdict.kind == Foldability::kExact &&
        partitions * slice(gradient.elements, partitions, 0).elements != gradient.elements) {
      verdict = {Foldability::kBounded, "the " + std::to_string(partitions) +
                                            " slices of gradient '" + gradient.name +
                                            "' are not equal"};
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
