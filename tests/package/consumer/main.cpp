// Expands and simulates a plan with the installed package: one raw gradient of 128 elements, by ps
// on two nodes, in one partition, whose server is node 0.
//  - There are 9 tasks: Forward and Backward on both nodes (4); Send, Recv and Merge towards the
//    server (3); Send and Recv of the mean (2).
//  - It takes 3.024 us: computation and merging cost nothing, and the two messages of 512 B follow
//    each other. Each takes o + S/B = 1 us + 512 B / (1 GB/s) = 1.512 us.
#include <iostream>

#include "casync/topology.hpp"
#include "sim/simulator.hpp"

int main() {
  using namespace hipress;
  models::Model model;
  model.gradients.push_back({.name = "weight", .elements = 128});
  casync::Plan plan;
  plan.nodes = 2;
  plan.decisions.resize(1);
  const casync::TaskGraph graph = casync::expand(model, plan);

  costs::Profile profile;
  profile.link = {.overhead_s = 1e-6, .bandwidth = 1e9, .bandwidth_both_ways = 1e9};
  const sim::Result result = sim::simulate(graph, sim::TaskCosts(profile, plan.algorithms),
                                           costs::cluster_from_profile(profile, plan.nodes),
                                           {.network = sim::Network::kPort});
  std::cout << graph.tasks() << " tasks, " << result.iteration.count() << " ps\n";
}
