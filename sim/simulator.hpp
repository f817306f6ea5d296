#pragma once

#include <cstdint>

#include "casync/task_graph.hpp"
#include "costs/cluster.hpp"
#include "sim/run.hpp"
#include "sim/task_costs.hpp"

// Example: predict one iteration of a plan of `model` (casync/plan.hpp). A sim::Scenario
// (scenario.hpp) holds all inputs in one value, and simulates back-to-back iterations too.
//
//   const costs::Profile profile = costs::read_profile("sosp21");
//   const costs::Cluster cluster = costs::cluster_from_profile(profile, plan.nodes);
//   const casync::TaskGraph graph = casync::expand(model, plan);  // casync/topology.hpp
//   const sim::TaskCosts costs(profile, plan.algorithms);
//   const sim::Result result =
//       sim::simulate(graph, costs, cluster, {.network = sim::Network::kFair});
//   fmt::print("{} s, computation until {} s\n", casync::to_seconds(result.iteration),
//              casync::to_seconds(result.compute));

namespace hipress::sim {

/// Runs a graph in virtual time. Equal input gives bit-identical results. The graph must satisfy
/// casync::check(), as every graph expanded from a plan does: simulate() itself does not notice a
/// Send without a Recv. Throws io::InputError for impossible costs (zero bandwidth, negative
/// latency, NaN), a task of more than kLongest_s or a run of more than 53 days; io::RunError, which
/// names up to ten stuck tasks and what they wait for, if the graph cannot finish; Stopped if
/// Options::stop returns true.
Result simulate(const casync::TaskGraph& graph, const TaskCosts& costs,
                const costs::Cluster& cluster, const Options& options = {});

}  // namespace hipress::sim
