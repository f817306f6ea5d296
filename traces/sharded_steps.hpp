#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "traces/sharded.hpp"

namespace hipress::traces {

/// Name and sharding of a step.
struct NamedSharding {
  std::string name;
  std::optional<Sharding> sharding;  ///< empty: it reduces nothing
};

/// Sharding that steps share.
struct CommonSharding {
  std::vector<std::size_t> steps;  ///< indices of the steps like the last one
  Sharding sharding;               ///< sharding of the last step, with medians of times
};

/// Returns the sharding of whole steps. Leaves out steps without reductions and incomplete steps at
/// both ends, and reports that in `diagnostics`. Throws io::Unmet, with what is missing, if no step
/// has layers, or if steps reduce different numbers of elements.
CommonSharding common_sharding(const std::vector<NamedSharding>& steps,
                               std::vector<std::string>& diagnostics);

/// Elements of all layers, at most models::kMaxElements + 1.
std::int64_t elements_of(const Sharding& sharding);

}  // namespace hipress::traces
