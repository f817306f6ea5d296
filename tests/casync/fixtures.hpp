#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "casync/topology.hpp"

namespace hipress::casync {

/// An algorithm whose messages have two bytes per element.
inline Algorithm half_bytes(bool half_precision = false) {
  return {.name = "half",
          .encoded_bytes = [](std::int64_t elements) { return 2 * elements; },
          .half_precision = half_precision};
}

/// A model with gradients "g0", "g1" … of these sizes, which are all ready at once.
inline models::Model model_of(std::vector<std::int64_t> sizes) {
  models::Model model;
  for (std::size_t g = 0; g < sizes.size(); ++g) {
    model.gradients.push_back({.name = fmt::format("g{}", g), .elements = sizes[g]});
  }
  return model;
}

/// A plan with the same decision for all gradients.
inline Plan plan_of(const std::string& topology, std::uint32_t nodes, std::int8_t algorithm,
                    std::int32_t partitions, std::size_t gradients = 1,
                    bool half_precision = false) {
  Plan plan;
  plan.topology = topology;
  plan.nodes = nodes;
  plan.algorithms = {half_bytes(half_precision)};
  plan.decisions.assign(gradients, {algorithm, partitions});
  return plan;
}

}  // namespace hipress::casync
