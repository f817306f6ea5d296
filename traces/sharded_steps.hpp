#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "traces/sharded.hpp"

namespace hipress::traces {

struct NamedSharding {
  std::string name;
  std::optional<Sharding> sharding;  ///< empty: it reduces nothing
};

/// Sharding that the selected steps have in common.
struct CommonSharding {
  std::vector<std::size_t> steps;  ///< indices of the steps that are like the last one
  Sharding sharding;               ///< sharding of the last step, with medians of times
};

/// Returns the common sharding of whole steps. Leaves out steps without reductions and cut-off
/// steps at both ends; `diagnostics` reports them. Throws io::Unmet, which says what is missing, if
/// no step has layers, or if steps reduce different numbers of elements.
CommonSharding common_sharding(const std::vector<NamedSharding>& steps,
                               std::vector<std::string>& diagnostics);

/// Sum of the elements of all layers, at most models::kMaxElements + 1.
std::int64_t elements_of(const Sharding& sharding);

}  // namespace hipress::traces
