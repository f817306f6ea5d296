#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "casync/task_graph.hpp"
#include "traces/timeline.hpp"

/// Critical path, split into runs: first the computation, then gradients that the path waits for.
namespace hipress::report {

/// Consecutive tasks of a path that all compute, or all belong to one unit.
struct PathRun {
  bool is_computation = false;
  std::uint32_t unit = 0;  ///< gradient or bucket; 0 for computation
  casync::Picoseconds start{}, end{};
  std::array<casync::Picoseconds, casync::kKinds> by_kind{};
  casync::Picoseconds wire{};  ///< time between Send and Recv, and between runs
};

/// Splits a critical path into runs, in chronological order. A run begins where the previous one
/// ends, so the lengths of all runs add up to the path's.
std::vector<PathRun> path_runs(const casync::TaskGraph& graph, const traces::Timeline& timeline,
                               const std::vector<casync::TaskId>& path);

}  // namespace hipress::report
