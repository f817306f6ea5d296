#pragma once

#include <string>
#include <vector>

#include "casync/task_graph.hpp"
#include "costs/profile.hpp"

namespace hipress::requests {

/// Notes about collectives of a graph whose costs are estimated ("all-reduce of 8 nodes was not
/// measured: …"). Covers all-reduces of all nodes and collectives of groups, each once.
std::vector<std::string> estimates_of(const casync::TaskGraph& graph,
                                      const costs::Profile& profile);

}  // namespace hipress::requests
