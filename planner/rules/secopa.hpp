#pragma once

#include <cstdint>
#include <string_view>

#include "planner/problem/problem.hpp"
#include "planner/problem/search_result.hpp"
#include "planner/rules/secopa_costs.hpp"

namespace hipress::planner {

/// SeCoPa's decision for a gradient, with its cost by the formulas (in the costs' unit of time).
struct SecopaChoice {
  bool compress = false;
  int partitions = 1;
  double cost = 0;
};

/// True if SeCoPa has formulas for the topology.
bool secopa_knows(std::string_view topology);

/// SeCoPa's decision for a gradient of `elements` among `nodes`, by the formulas for `topology`.
/// Throws io::InputError for a topology without formulas. Tries K from 1 to N (above 2^14, powers
/// of two and N), raw and compressed, and takes the lowest cost, the first of equals; compressed
/// only if that is strictly cheaper. One node has no receiver: raw, K = 1.
SecopaChoice choose(const SecopaCosts& costs, std::string_view topology, std::uint32_t nodes,
                    std::int64_t elements);

/// Plans each gradient on its own by SeCoPa's published cost model, with the published costs or, if
/// the problem has a profile, with measured ones. Compresses with first_lossy() of the algorithms
/// that send messages of slices; throws io::InputError if no such algorithm is given.
SearchResult search_secopa(const Problem& problem);

}  // namespace hipress::planner
