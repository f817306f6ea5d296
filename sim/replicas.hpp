#pragma once

#include "sim/scenario.hpp"

namespace hipress::sim {

/// Iteration times over replicas, which differ in the draws of the jitter alone.
struct Replicas {
  std::uint32_t count = 0;
  Picoseconds mean{}, p10{}, p50{}, p90{},
      p99{};  ///< percentiles: the least time that so many reach
};

/// Simulates replicas 0 to count−1 of a scenario with jitter, `jobs` at a time; the same for any
/// number of jobs. Throws as simulate does. `graph` is the scenario's.
Replicas run_replicas(const Scenario& scenario, const casync::TaskGraph& graph, std::uint32_t count,
                      unsigned jobs);

}  // namespace hipress::sim
