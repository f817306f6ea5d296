#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "casync/task_graph.hpp"
#include "traces/timeline.hpp"

/// A critical path as its reader tells it: computation until then, then the gradients waited for.
namespace hipress::report {

/// Tasks of a path that follow one another and are of one unit, or all computation.
struct PathRun {
  bool is_computation = false;
  std::uint32_t unit = 0;  ///< where it is no computation: a gradient or a bulk group
  casync::Picoseconds start{}, end{};
  std::array<casync::Picoseconds, casync::kKinds> by_kind{};
  casync::Picoseconds wire{};  ///< between a Send and its Recv, and before the run's first task
};

/// The runs of a critical path, in order of time. Each begins where the one before ends, so their
/// lengths add up to the path's.
std::vector<PathRun> path_runs(const casync::TaskGraph& graph, const traces::Timeline& timeline,
                               const std::vector<casync::TaskId>& path);

}  // namespace hipress::report
