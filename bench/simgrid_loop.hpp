#pragma once

#include <cstdint>
#include <memory>

#include "casync/task_graph.hpp"

namespace hipress::bench {

/// Cluster simulated by SimGrid (model CM02, factors 1, no cross-traffic, no TCP window). Each node
/// has an up link and a down link, without latency.
class SimGridLoop {
 public:
  enum class Sends {
    kOneByOne,  ///< an egress carries one message at a time, in the order in which they become
                ///< ready
    kAtOnce,    ///< a message starts as soon as it is ready, and SimGrid shares the links max-min
  };

  virtual ~SimGridLoop() = default;
  /// Runs a graph in which only Sends take time. SimGrid's activities are created when they become
  /// ready. Returns the seconds of virtual time.
  virtual double run(const casync::TaskGraph& graph, Sends sends) = 0;
};

/// Makes the loop; null in a build without SimGrid. A message counts `overhead_bytes` more than its
/// size. There may be one loop per process, because SimGrid has one engine.
std::unique_ptr<SimGridLoop> make_simgrid_loop(std::uint32_t nodes, double bytes_per_s,
                                               std::int64_t overhead_bytes);

}  // namespace hipress::bench
