#pragma once

#include <cstdint>
#include <memory>

#include "casync/task_graph.hpp"

namespace hipress::bench {

/// A cluster simulated by SimGrid (model CM02, factors 1, no cross-traffic, no TCP window): each
/// node has a link up and a link down, without latency.
class SimGridLoop {
 public:
  enum class Sends {
    kOneByOne,  ///< an egress carries one message at a time, in the order of their coming
    kAtOnce,    ///< a message starts as soon as it is ready, and SimGrid shares the links max-min
  };

  virtual ~SimGridLoop() = default;
  /// Runs a graph in which Sends alone take time, creating SimGrid's activities as they become
  /// ready; returns the seconds of virtual time.
  virtual double run(const casync::TaskGraph& graph, Sends sends) = 0;
};

/// Null where this was built without SimGrid. A message takes `overhead_bytes` more than it has.
/// There may be one per process, as of SimGrid's engine.
std::unique_ptr<SimGridLoop> make_simgrid_loop(std::uint32_t nodes, double bytes_per_s,
                                               std::int64_t overhead_bytes);

}  // namespace hipress::bench
