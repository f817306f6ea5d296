#pragma once

#include <cstdint>
#include <string_view>

#include "planner/problem/problem.hpp"
#include "planner/problem/search_result.hpp"
#include "planner/rules/secopa_costs.hpp"

namespace hipress::planner {

/// SeCoPa's decision for a gradient. The cost has the unit of time of the formulas' costs.
struct SecopaChoice {
  bool compress = false;
  int partitions = 1;
  double cost = 0;
};

/// True if SeCoPa has formulas for the topology.
bool secopa_knows(std::string_view topology);

/// SeCoPa's decision for a gradient of `elements` among `nodes`, by the formulas for `topology`.
/// Compares the costs of all K from 1 to N, raw and compressed; above K = 2^14, only of powers of
/// two and of N. Takes the first of the lowest; compression must be strictly cheaper than raw. One
/// node has no receiver: raw, K = 1. Throws io::InputError for a topology without formulas.
SecopaChoice choose(const SecopaCosts& costs, std::string_view topology, std::uint32_t nodes,
                    std::int64_t elements);

/// Plans each gradient on its own by SeCoPa's published cost model. The costs are measured if the
/// problem has a profile, otherwise as published. The algorithm is first_lossy() of those that send
/// messages of slices; throws io::InputError if the list has no such algorithm.
SearchResult search_secopa(const Problem& problem);

}  // namespace hipress::planner
