#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "casync/task_graph.hpp"
#include "traces/timeline.hpp"

/// Critical path, split into runs: first the computation, then the gradients that the path waits
/// for.
namespace hipress::report {

/// Consecutive tasks of a path that belong to one unit, or are all computation.
struct PathRun {
  bool is_computation = false;
  std::uint32_t unit = 0;  ///< gradient or bucket; 0 for computation
  casync::Picoseconds start{}, end{};
  std::array<casync::Picoseconds, casync::kKinds> by_kind{};
  casync::Picoseconds wire{};  ///< time between Send and Recv, and before the run's first task
};

/// Splits a critical path into runs, in order of time. Each run begins where the previous one ends,
/// so their lengths add up to the path's.
std::vector<PathRun> path_runs(const casync::TaskGraph& graph, const traces::Timeline& timeline,
                               const std::vector<casync::TaskId>& path);

}  // namespace hipress::report
