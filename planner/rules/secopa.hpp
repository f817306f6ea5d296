#pragma once

#include <cstdint>
#include <string_view>

#include "planner/problem/problem.hpp"
#include "planner/problem/search_result.hpp"
#include "planner/rules/secopa_costs.hpp"

namespace hipress::planner {

/// Whether to compress a gradient, into how many partitions, and what the formulas say that costs
/// (in the costs' unit of time).
struct SecopaChoice {
  bool compress = false;
  int partitions = 1;
  double cost = 0;
};

/// True if SeCoPa has formulas for the topology.
bool secopa_knows(std::string_view topology);

/// SeCoPa's decision for one gradient of `elements` among `nodes`, by the formulas for `topology`
/// (io::InputError for one without): the K of 1 … N (of those above 2^14, the powers of
/// two and N) with the least cost, the first of equals, raw and compressed; compressed only if that
/// is strictly cheaper. One node has nobody to send to: raw, K = 1.
SecopaChoice choose(const SecopaCosts& costs, std::string_view topology, std::uint32_t nodes,
                    std::int64_t elements);

/// Plans each gradient alone by SeCoPa's published cost model, with the published costs or, if the
/// problem has a profile, with measured ones. Compresses with first_lossy() of those that
/// send messages of slices; io::InputError if there is none.
SearchResult search_secopa(const Problem& problem);

}  // namespace hipress::planner
