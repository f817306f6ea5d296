#include "planner/timing/evaluation.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <string>

#include "planner/problem/problem.hpp"
#include "planner/timing/evaluator.hpp"

namespace hipress::planner {
namespace {

using Catch::Contains;

/// Equal gradients on links of 100 Gbit/s, all raw with K = N.
struct Instance {
  Instance(std::uint32_t nodes, std::size_t gradients, sim::Network network)
      : profile(costs::read_profile("v100-100g")),
        machines{profile, costs::cluster_from_profile(profile, nodes), network} {
    for (std::size_t g = 0; g < gradients; ++g) {
      model.gradients.push_back({.name = fmt::format("g{}", g),
                                 .elements = std::int64_t{32} * nodes * 4,
                                 .ready_s = 1e-4 * static_cast<double>(g)});
    }
    plan.nodes = nodes;
    plan.decisions.assign(gradients, {casync::kRaw, static_cast<std::int32_t>(nodes)});
  }
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  /// Number of tasks of the plan's graph that a simulation runs.
  std::size_t tasks() const {
    const AffordableScenario how = affordable_scenario(model, plan, machines);
    return sim::expand(how.scenario, how.fold).graph.tasks();
  }

  models::Model model;
  costs::Profile profile;
  Machines machines;
  casync::Plan plan;
};

// 150 · 7·N·(N − 1) tasks, 4.2 million, are more than can be simulated repeatedly.
constexpr std::uint32_t kManyNodes = 64;
constexpr std::size_t kManyGradients = 150;

TEST_CASE("large graphs whose links have bursts are simulated on network port") {
  Instance large(kManyNodes, kManyGradients, sim::Network::kFair);
  large.machines.cluster.link.burst_bytes = 64 << 10;
  const AffordableTime time = affordable_iteration(large.model, large.plan, large.machines);
  REQUIRE(time.iteration_s);
  CHECK_THAT(time.diagnostic, Contains("on network port") && Contains("bursts"));
  large.machines.network = sim::Network::kPort;
  const AffordableTime on_port = affordable_iteration(large.model, large.plan, large.machines);
  CHECK(on_port.diagnostic.empty());
  CHECK(on_port.iteration_s == time.iteration_s);
  large.machines.cluster.link.burst_bytes = 0;
  CHECK(simulated_iteration_s(large.model, large.plan, large.machines) == *time.iteration_s);
}

TEST_CASE("what a simulation runs is estimated as it is folded") {
  const auto estimate = [](const Instance& instance) {
    return simulated_tasks(instance.model, instance.plan, instance.machines);
  };
  for (const sim::Network network : {sim::Network::kPort, sim::Network::kFair}) {
    const bool fair = network == sim::Network::kFair;
    Instance small(8, 20, network);
    const double whole = whole_tasks(small.model, small.plan);
    CAPTURE(fair);
    CHECK(estimate(small) == whole / 8);
    const std::size_t folded = small.tasks();
    // Flows use up a link's burst in sequence, so nodes differ.
    small.machines.cluster.link.burst_bytes = 64 << 10;
    CHECK(estimate(small) == (fair ? whole : whole / 8));
    CHECK(small.tasks() == (fair ? 8 * folded : folded));
    small.machines.cluster.link.burst_bytes = 0;
    // If transfers slow kernels down, they do so on every node.
    small.machines.cluster.overlap.codec_transfer = 1.5;
    CHECK(estimate(small) == whole / 8);
    CHECK(small.tasks() == folded);
    small.machines.cluster.cores_per_host = 8;
    CHECK(estimate(small) == whole);
    CHECK(small.tasks() == 8 * folded);
  }
}

TEST_CASE("large graphs are folded where transfers slow kernels too") {
  Instance large(kManyNodes, kManyGradients, sim::Network::kPort);
  large.machines.cluster.overlap.codec_transfer = 1.5;
  // PatternSimulator does not model transfers that slow codecs.
  CHECK_FALSE(nodes_are_alike(large.machines.cluster));
  const AffordableTime folded = affordable_iteration(large.model, large.plan, large.machines);
  REQUIRE(folded.iteration_s);
  CHECK(*folded.iteration_s == simulated_iteration_s(large.model, large.plan, large.machines));
}

TEST_CASE("large graphs whose nodes differ are simulated whole, and larger ones given up",
          "[slow]") {
  Instance large(kManyNodes, kManyGradients, sim::Network::kPort);
  large.machines.cluster.compute_speed[3] = 0.5;
  const AffordableTime whole = affordable_iteration(large.model, large.plan, large.machines);
  REQUIRE(whole.iteration_s);
  CHECK(whole.diagnostic.empty());
  CHECK(*whole.iteration_s == simulated_iteration_s(large.model, large.plan, large.machines));
  Instance larger(kManyNodes, 3 * kManyGradients, sim::Network::kPort);
  larger.machines.cluster.compute_speed[3] = 0.5;
  const AffordableTime none = affordable_iteration(larger.model, larger.plan, larger.machines);
  CHECK_FALSE(none.iteration_s);
  CHECK_THAT(none.diagnostic, Contains("nodes 2 and 3 compute at different speeds"));
}

TEST_CASE("groups by hand are simulated in large graphs too") {
  Instance large(kManyNodes, kManyGradients, sim::Network::kPort);
  const double alone =
      affordable_iteration(large.model, large.plan, large.machines).iteration_s.value();
  large.plan.bulk_groups.emplace_back();
  for (std::uint32_t g = 130; g < 150; ++g) large.plan.bulk_groups.front().push_back(g);
  const double grouped =
      affordable_iteration(large.model, large.plan, large.machines).iteration_s.value();
  CHECK(grouped == simulated_iteration_s(large.model, large.plan, large.machines));
  CHECK(grouped != alone);
}

}  // namespace
}  // namespace hipress::planner
