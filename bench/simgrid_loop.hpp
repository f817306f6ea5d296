#pragma once

#include <cstdint>
#include <memory>

#include "casync/task_graph.hpp"

namespace hipress::bench {

/// A cluster in SimGrid (model CM02, factors 1, no cross-traffic, no TCP window). Each node has an
/// uplink and a downlink without latency.
class SimGridLoop {
 public:
  enum class Sends {
    kOneByOne,  ///< an egress carries one message at a time, in the order in which messages become
                ///< ready
    kAtOnce,    ///< a message starts as soon as it is ready; SimGrid shares links max-min fairly
  };

  virtual ~SimGridLoop() = default;
  /// Runs the graph, in which only Sends take time. Creates SimGrid's activity for a Send when the
  /// Send becomes ready. Returns the simulated time in seconds.
  virtual double run(const casync::TaskGraph& graph, Sends sends) = 0;
};

/// Makes the loop; null in a build without SimGrid. `overhead_bytes` are added to every message. A
/// process may have only one loop, because SimGrid has one engine.
std::unique_ptr<SimGridLoop> make_simgrid_loop(std::uint32_t nodes, double bytes_per_s,
                                               std::int64_t overhead_bytes);

}  // namespace hipress::bench
