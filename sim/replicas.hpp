#pragma once

#include "sim/scenario.hpp"

namespace hipress::sim {

/// Iteration times over replicas, which differ only in the draws of the jitter.
struct Replicas {
  std::uint32_t count = 0;
  Picoseconds mean{}, p10{}, p50{}, p90{}, p99{};  ///< percentiles by nearest rank
};

/// Simulates replicas 0 to count−1 of a scenario with jitter, `jobs` at a time; the result does not
/// depend on `jobs`. `graph` is the graph of the scenario. Throws as simulate() does.
Replicas run_replicas(const Scenario& scenario, const casync::TaskGraph& graph, std::uint32_t count,
                      unsigned jobs);

}  // namespace hipress::sim
