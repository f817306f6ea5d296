#include "sim/folding.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <tuple>

#include "io/error.hpp"
#include "sim/utilisation.hpp"
#include "tests/sim/fixtures.hpp"

namespace hipress::sim {
namespace {

using Catch::Matchers::Contains;

constexpr std::int64_t kWord = 32;

/// Adds shared links, but keeps nodes alike: all are on one host, or each is on a host of its own
/// in one rack.
void join_by_a_hierarchy(costs::Cluster& cluster, bool on_one_host) {
  if (on_one_host) {
    cluster.host.assign(cluster.nodes, 0);
    cluster.host_link = cluster.link;
    cluster.host_link->bandwidth = cluster.host_link->bandwidth_both_ways = 3e9;
  } else {
    cluster.racks = {
        costs::RackCosts{.hosts = cluster.nodes, .oversubscription = 4, .latency_s = 1e-6}};
  }
}

/// A random scenario that can be folded. Gradients have equal slices, K from N to 3N, and ready
/// times that sometimes coincide. At random, there are compression, bulk groups, all-reduces,
/// batches, pipelining and back-to-back iterations, on either network.
Scenario random_scenario(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t bound) {
    return static_cast<std::uint32_t>(random() % bound);
  };
  const std::uint32_t nodes = 2 + below(6);
  Scenario scenario = test_scenario(test_model({}), below(2) == 0 ? "ps" : "ring", nodes, 0, 1);
  const std::size_t gradients = 1 + below(6);
  for (std::size_t g = 0; g < gradients; ++g) {
    const std::int32_t partitions = static_cast<std::int32_t>(nodes * (1 + below(3)));
    scenario.model.gradients.push_back(
        {.name = "g" + std::to_string(g),
         .elements = kWord * partitions * std::int64_t{1 + below(40)},
         .ready_s = 1e-6 * below(5) * below(200)});
    scenario.plan.decisions.push_back(
        {static_cast<std::int8_t>(below(2) == 0 ? 0 : casync::kRaw), partitions});
  }
  scenario.profile.merge = constant(below(2) * kUs);
  scenario.model.forward_s = 1e-6 * below(50);
  scenario.network = below(2) == 0 ? Network::kPort : Network::kFair;
  costs::LinkCosts& link = scenario.cluster.link;
  link.overhead_s = below(3) == 0 ? 0 : 1e-6 * below(20);
  link.latency_s = below(3) == 0 ? 0 : 1e-6 * below(20);
  link.bandwidth_both_ways = link.bandwidth * (1.0 - 0.1 * below(6));
  if (below(3) == 0) scenario.cluster.overlap = {1.25, 1.1, 1.5};
  scenario.cluster.compute_speed.assign(nodes, below(2) == 0 ? 1 : 0.75);
  if (below(2) == 0) scenario.plan.bulk.threshold_bytes = below(40000);
  if (below(2) == 0) scenario.plan.bulk.wait = casync::Picoseconds(kUs * below(500));
  if (below(3) == 0) scenario.plan.raw_topology = "allreduce";
  scenario.profile.all_reduce[static_cast<int>(nodes)] = constant(kUs * (1 + below(100)));
  if (below(2) == 0) {
    scenario.plan.gpus_per_node = scenario.cluster.gpus_per_node = 2 + below(7);
    scenario.cluster.gpu_link = {1e-6 * below(3), 4e9};
  }
  if (below(2) == 0) {
    casync::Aggregation& batch = scenario.plan.batch;
    batch.threshold_bytes = below(2) == 0 ? 1 << 20 : below(8000);
    if (below(2) == 0) batch.wait = casync::Picoseconds(kUs * below(500));
    if (below(2) == 0) batch.limit_bytes = below(20000);
  }
  scenario.plan.pipelining = below(3) > 0;
  if (below(3) == 0) scenario.iterations = 2 + static_cast<int>(below(4));
  if (below(3) == 0) scenario.transfer_order = TransferOrder::kNeed;
  if (below(4) == 0) join_by_a_hierarchy(scenario.cluster, below(2) == 0);
  if (below(5) == 0) {
    scenario.plan.topology = "allreduce";
    scenario.plan.algorithms = {half_codec()};
  }
  return scenario;
}

/// A task on node 0, or on the representative of all nodes: kind, gradient, turn, peer offset,
/// amount, flags, start and end.
using Happening = std::tuple<casync::Kind, std::uint32_t, std::uint32_t, std::uint32_t,
                             std::int64_t, std::uint8_t, std::int64_t, std::int64_t>;
std::vector<Happening> happenings(const Scenario& scenario, const casync::TaskGraph& graph) {
  const Result result = simulate(scenario, graph, Timelines::kRecorded);
  std::vector<Happening> all;
  for (casync::TaskId id = 0; id < graph.tasks(); ++id) {
    const casync::Task& task = graph[id];
    if (graph.representative(task.node) != 0) continue;
    all.emplace_back(task.kind, task.gradient, task.partition / graph.nodes, task.peer_offset,
                     task.amount, task.flags, result.timeline.start[id].count(),
                     result.timeline.end[id].count());
  }
  std::sort(all.begin(), all.end());
  return all;
}

TEST_CASE("a folded graph gives the times of the whole one, task by task") {
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    const Scenario scenario = random_scenario(seed);
    const ExpandedGraph whole = expand(scenario, Fold::kNever);
    const ExpandedGraph folded = expand(scenario, Fold::kExactly);
    REQUIRE(folded.graph.folded);
    REQUIRE(folded.exact);
    if (scenario.plan.pipelining) {
      CHECK(casync::whole_tasks(folded.graph) == whole.graph.tasks());
    }
    REQUIRE(happenings(scenario, folded.graph) == happenings(scenario, whole.graph));
    const Result expected = simulate(scenario, whole.graph, Timelines::kRecorded);
    const Result result = simulate(scenario, folded.graph, Timelines::kRecorded);
    CHECK(result.iteration == expected.iteration);
    CHECK(result.compute == expected.compute);
    CHECK(result.bytes_sent == expected.bytes_sent);
    if (scenario.iterations > 1) {
      const SteadyState steady = steady_state(folded.graph, result.timeline, scenario.iterations);
      CHECK(steady.periods ==
            steady_state(whole.graph, expected.timeline, scenario.iterations).periods);
    }
    const Utilisation expected_use = utilisation(scenario, whole.graph, expected);
    const Utilisation use = utilisation(scenario, folded.graph, result);
    REQUIRE(use.nodes.size() == expected_use.nodes.size());
    for (std::size_t node = 0; node < use.nodes.size(); ++node) {
      CHECK(use.nodes[node].codec == Approx(expected_use.nodes[node].codec));
      CHECK(use.nodes[node].local == Approx(expected_use.nodes[node].local));
      CHECK(use.nodes[node].egress.bytes == expected_use.nodes[node].egress.bytes);
      CHECK(use.nodes[node].ingress.busy == Approx(expected_use.nodes[node].ingress.busy));
    }
  }
}

TEST_CASE("a folded graph has one node's share of the tasks") {
  const Scenario scenario = test_scenario(test_model({kWord * 16 * 16}), "ring", 16, 0, 16);
  const casync::TaskGraph whole = expand(scenario, Fold::kNever).graph;
  const casync::TaskGraph folded = expand(scenario, Fold::kExactly).graph;
  CHECK(folded.tasks() * 16 == whole.tasks());
  CHECK(folded.representatives() == 1);
  CHECK_NOTHROW(casync::check(folded));
}

TEST_CASE("a graph whose nodes do different things is not folded, and says why") {
  Scenario scenario = test_scenario(test_model({kWord * 8, kWord * 6}), "ps", 4, 0, 4);
  const auto why = [&] {
    const ExpandedGraph expanded = expand(scenario, Fold::kExactly);
    CHECK_FALSE(expanded.graph.folded);
    return expanded.why_whole;
  };
  CHECK(why() == "the 4 slices of gradient 'g1' are not equal");

  scenario.plan.decisions[0].partitions = 2;
  CHECK(why() == "gradient 'g0' has 2 partitions, not a multiple of 4");
  CHECK_THROWS_WITH(expand(scenario, Fold::kAlways), Contains("gradient 'g0' has 2 partitions"));
  CHECK_THROWS_WITH(casync::expand(scenario.model, scenario.plan, casync::Folding::kFolded),
                    Contains("cannot be folded: gradient 'g0'"));

  scenario.plan.decisions[0].partitions = 4;
  scenario.plan.batch.threshold_bytes = 1;
  CHECK(why() == "the 4 slices of gradient 'g1' are not equal, and launches are batched");
  CHECK_THROWS_WITH(expand(scenario, Fold::kAlways), Contains("launches are batched"));

  scenario.plan.batch = {};
  scenario.cluster.compute_speed[2] = 0.5;
  CHECK(why() == "nodes 1 and 2 compute at different speeds");
  scenario.cluster = test_cluster(4);
  scenario.cluster.link.burst_bytes = 1;
  CHECK(why() == "links have bursts, which flows take one after the other");
  scenario.cluster.link.burst_bytes = 0;
  scenario.cluster.cores_per_host = 2;
  CHECK(why() == "nodes share the cores of hosts");
}

TEST_CASE("bulk groups make a graph of small gradients foldable") {
  Scenario scenario = test_scenario(test_model({7, 5000, 33, kWord * 4 * 100}), "ring", 4, 0, 1);
  scenario.plan.decisions[3].partitions = 4;
  CHECK_FALSE(expand(scenario, Fold::kExactly).graph.folded);
  scenario.plan.bulk.threshold_bytes = 40000;
  const ExpandedGraph folded = expand(scenario, Fold::kExactly);
  REQUIRE(folded.graph.folded);
  CHECK_NOTHROW(casync::check(folded.graph));
  const casync::TaskGraph whole = expand(scenario, Fold::kNever).graph;
  CHECK(happenings(scenario, folded.graph) == happenings(scenario, whole));
}

TEST_CASE("folding unequal slices gives bounds around the whole graph's time") {
  for (const char* topology : {"ps", "ring"}) {
    CAPTURE(topology);
    const Scenario scenario =
        test_scenario(test_model({kWord * 4 * 100 - 900, kWord * 4 * 50, 77}), topology, 4, 0, 4);
    const ExpandedGraph folded = expand(scenario, Fold::kAlways);
    REQUIRE(folded.graph.folded);
    CHECK_FALSE(folded.exact);
    const FoldingBounds bounds = folding_bounds(scenario);
    const Picoseconds whole = simulate(scenario, expand(scenario, Fold::kNever).graph).iteration;
    CHECK(bounds.shortest < bounds.longest);
    CHECK(bounds.shortest <= whole);
    CHECK(whole <= bounds.longest);
    CHECK(simulate(scenario, folded.graph).iteration == bounds.longest);
  }
}

TEST_CASE("ways to fold are known by name") {
  CHECK(parse_fold("auto") == Fold::kExactly);
  CHECK(parse_fold("always") == Fold::kAlways);
  CHECK_THROWS_AS(parse_fold("sometimes"), io::InputError);
}

}  // namespace
}  // namespace hipress::sim
