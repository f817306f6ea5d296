#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "traces/sharded.hpp"

namespace hipress::traces {

/// A step of a trace, and how it is sharded.
struct NamedSharding {
  std::string name;
  std::optional<Sharding> sharding;  ///< none: it reduces nothing
};

/// What steps have in common.
struct CommonSharding {
  std::vector<std::size_t> steps;  ///< those that are like the last
  Sharding sharding;               ///< the last one's, with medians of times
};

/// Leaves out steps without reductions, and incomplete steps at both ends. Throws io::Unmet, with
/// what is missing, if no step has layers, or if steps reduce different numbers of elements.
/// Sentences about what is left out go to `diagnostics`.
CommonSharding common_sharding(const std::vector<NamedSharding>& steps,
                               std::vector<std::string>& diagnostics);

/// Elements of all layers; of more than models::kMaxElements one more than that.
std::int64_t elements_of(const Sharding& sharding);

}  // namespace hipress::traces
