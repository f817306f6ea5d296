#include "sim/utilisation.hpp"

#include <catch2/catch.hpp>

#include "tests/sim/fixtures.hpp"

namespace hipress::sim {
namespace {

using casync::kRaw;

/// A scenario with its graph and result.
struct Case {
  Case(models::Model model, const std::string& topology, std::uint32_t nodes, std::int8_t algorithm,
       std::int32_t partitions)
      : scenario(test_scenario(std::move(model), topology, nodes, algorithm, partitions)) {}

  Utilisation utilisation() {
    graph = casync::expand(scenario.model, scenario.plan);
    result = simulate(scenario, graph, Timelines::kRecorded);
    return sim::utilisation(scenario, graph, result);
  }
  double iteration_us() const { return casync::to_seconds(result.iteration) * 1e6; }

  Scenario scenario;
  casync::TaskGraph graph;
  Result result;
};

TEST_CASE("utilisations of a raw pair follow from its two messages") {
  // ps with node 0 as the server: 32 elements are 128 B, which take 128 ns. Forward takes 10 us,
  // then 5.128 us there and 5.128 us back; merging is free: T = 20.256 us.
  models::Model model = test_model({32});
  model.forward_s = 10e-6;
  for (const Network network : {Network::kPort, Network::kFair}) {
    Case pair(model, "ps", 2, kRaw, 1);
    pair.scenario.network = network;
    const Utilisation use = pair.utilisation();
    const double iteration = 10 + 2 * 5.128;
    REQUIRE(pair.iteration_us() == Approx(iteration));
    for (const NodeUse& node : use.nodes) {
      CHECK(node.compute == Approx(10 / iteration));
      CHECK(node.codec == 0);
      for (const LinkUse* link : {&node.egress, &node.ingress}) {
        CHECK(link->bytes == 128);
        CHECK(link->messages == 1);
        CHECK(link->utilisation == Approx(5.128 / iteration));
        CHECK(link->busy == Approx(5.128 / iteration));
      }
    }
    CHECK(use.hosts.empty());
  }
}

TEST_CASE("a codec stream is as busy as its tasks are long") {
  // Ring of 2, K = 1, that starts on node 0. Node 0 encodes (3 us), and decodes the mean (2). Node
  // 1 decodes and adds (4), encodes (3), and decodes its own message (2), which overlaps with s. T
  // = 3 + s + 4 + 3 + s + 2 with s = 5.032 us (32 bytes).
  Case ring(test_model({32}), "ring", 2, 0, 1);
  const Utilisation use = ring.utilisation();
  const double iteration = 12 + 2 * 5.032;
  REQUIRE(ring.iteration_us() == Approx(iteration));
  CHECK(use.nodes[0].codec == Approx((3 + 2) / iteration));
  CHECK(use.nodes[1].codec == Approx((4 + 3 + 2) / iteration));
  CHECK(use.nodes[0].compute == 0);
}

TEST_CASE("messages that share an ingress keep their egress busy longer than they use it") {
  // Raw ps with one partition on 3 nodes. Nodes 1 and 2 send 128 B to node 0 at the same time, each
  // at half speed by fair sharing: both take 2·5.128 us. Then node 0 sends to both: 2·5.128 us
  // again. T = 4·5.128 us. Node 1's egress is used for 1/4 of it, and busy for 1/2.
  Case gather(test_model({32}), "ps", 3, kRaw, 1);
  const Utilisation use = gather.utilisation();
  REQUIRE(gather.iteration_us() == Approx(4 * 5.128));
  CHECK(use.nodes[1].egress.utilisation == Approx(0.25));
  CHECK(use.nodes[1].egress.busy == Approx(0.5));
  CHECK(use.nodes[0].ingress.utilisation == Approx(0.5));
  CHECK(use.nodes[0].ingress.busy == Approx(0.5));
  CHECK(use.nodes[0].ingress.bytes == 2 * 128);
  CHECK(use.nodes[0].ingress.messages == 2);
}

TEST_CASE("where both directions share, what they carry together is the limit") {
  // A raw ring of two with K = 2 sends in both directions at once, each at half speed: each
  // direction is half used, and both together are fully used.
  Case ring(test_model({64}), "ring", 2, kRaw, 2);
  ring.scenario.cluster.link.overhead_s = 0;
  ring.scenario.cluster.link.bandwidth_both_ways = kBandwidth / 2;
  for (const NodeUse& node : ring.utilisation().nodes) {
    CHECK(node.egress.utilisation == Approx(0.5));
    CHECK(node.egress.busy == Approx(1));
    CHECK(node.both_ways == Approx(1));
  }
  ring.scenario.network = Network::kPort;
  for (const NodeUse& node : ring.utilisation().nodes) CHECK(node.both_ways == Approx(1));
}

TEST_CASE("ports that carry one message at a time are busy exactly as much as they are used") {
  Case ring(test_model({100003, 77, 4096}), "ring", 4, 0, 3);
  ring.scenario.network = Network::kPort;
  for (const NodeUse& node : ring.utilisation().nodes) {
    CHECK(node.egress.busy == Approx(node.egress.utilisation));
    CHECK(node.ingress.busy == Approx(node.ingress.utilisation));
    CHECK(node.egress.busy > 0);
  }
}

TEST_CASE("cores that four encoding nodes share are all in use until the first message leaves") {
  // One thread encodes (3 us) and decodes (2 us): 5 core-us in 5 us on 2 cores make 1/2.
  Case alone(test_model({32}), "ring", 1, 0, 1);
  alone.scenario.cluster.cores_per_host = 2;
  CHECK(alone.utilisation().hosts.at(0).utilisation == Approx(0.5));
  // Compute speed 2 halves both the work and the time.
  alone.scenario.cluster.compute_speed[0] = 2;
  CHECK(alone.utilisation().hosts.at(0).utilisation == Approx(0.5));
  CHECK(alone.iteration_us() == Approx(2.5));
}

TEST_CASE("what codes factors uses cores as what codes slices does") {
  // Encode (3 us) and decode (2 us): 5 core-us in 5 us on 2 cores.
  Case alone(test_model({32}), "ring", 1, 0, 1);
  alone.scenario.cluster.cores_per_host = 2;
  alone.scenario.plan.algorithms[0].stages = [](std::span<const std::int64_t>) {
    return std::vector<casync::Algorithm::Factor>{{.bytes = 64}};
  };
  costs::CodecCosts& costs = alone.scenario.profile.codecs["byte"];
  costs = {};
  costs.stages = {{.a_s = 3e-6}};
  costs.decode_stages = {.a_s = 2e-6};
  CHECK(alone.utilisation().hosts.at(0).utilisation == Approx(0.5));
  CHECK(alone.iteration_us() == Approx(5));
}

TEST_CASE("transfers use cores at both ends") {
  // Raw pair with o = 0: a message of 10^6 elements takes 4 ms each way, and keeps half a core
  // busy: a quarter of a core on each of the two hosts throughout.
  Case pair(test_model({1'000'000}), "ps", 2, kRaw, 1);
  pair.scenario.cluster.link.overhead_s = 0;
  pair.scenario.cluster.link.core_s_per_byte = 0.5e-9;
  pair.scenario.cluster.cores_per_host = 1;
  const Utilisation use = pair.utilisation();
  REQUIRE(pair.iteration_us() == Approx(8000));
  REQUIRE(use.hosts.size() == 2);
  for (const HostUse& host : use.hosts) CHECK(host.utilisation == Approx(0.25));
}

TEST_CASE("an iteration of no length uses nothing, and another timeline is refused") {
  Case empty(test_model({}), "ps", 2, kRaw, 1);
  const Utilisation use = empty.utilisation();
  REQUIRE(use.nodes.size() == 2);
  CHECK(use.nodes[0].compute == 0);
  empty.result.timeline = {};
  CHECK_THROWS_AS(utilisation(empty.scenario, empty.graph, empty.result), std::invalid_argument);
}

}  // namespace
}  // namespace hipress::sim
