#pragma once

#include <string>
#include <vector>

#include "casync/task_graph.hpp"
#include "costs/profile.hpp"

namespace hipress::requests {

/// Notes about estimated costs of a graph's collectives ("all-reduce of 8 nodes was not measured:
/// …"), without duplicates: all-reduces of all nodes, and collectives of groups.
std::vector<std::string> estimates_of(const casync::TaskGraph& graph,
                                      const costs::Profile& profile);

}  // namespace hipress::requests
