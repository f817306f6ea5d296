#pragma once

#include <string>
#include <vector>

#include "casync/task_graph.hpp"
#include "costs/profile.hpp"

namespace hipress::requests {

/// What a reader must know of the costs of a graph's collectives ("all-reduce of 8 nodes was not
/// measured: …"), each sentence once: of an all-reduce of all nodes, or of shards in each group.
std::vector<std::string> estimates_of(const casync::TaskGraph& graph,
                                      const costs::Profile& profile);

}  // namespace hipress::requests
