#include <catch2/catch.hpp>
#include <map>
#include <numeric>

#include "io/error.hpp"
#include "requests/effect.hpp"
#include "sim/folding.hpp"
#include "sim/sensitivity.hpp"
#include "sim/utilisation.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/sim/fixtures.hpp"

namespace hipress::sim {
namespace {

using casync::kRaw;
using Catch::Matchers::Contains;

constexpr double kHostBandwidth = 4 * kBandwidth;

/// Cluster of `nodes_per_host` nodes per host, whose host_link is four times as fast as the link.
costs::Cluster hosts_of(std::uint32_t nodes, std::uint32_t nodes_per_host) {
  costs::Cluster cluster = test_cluster(nodes);
  for (std::uint32_t node = 0; node < nodes; ++node) cluster.host[node] = node / nodes_per_host;
  cluster.host_link = {
      .overhead_s = 1e-6, .bandwidth = kHostBandwidth, .bandwidth_both_ways = kHostBandwidth};
  return cluster;
}

/// Scenario of one raw gradient with K = N slices of 128 kB.
constexpr std::int64_t kSlice = 32'000;
constexpr std::int64_t kSlicePs = 4 * kSlice * kPsPerByte;
Scenario raw(const std::string& topology, costs::Cluster cluster) {
  const auto nodes = static_cast<std::int32_t>(cluster.nodes);
  Scenario scenario =
      test_scenario(test_model({kSlice * nodes}), topology, cluster.nodes, kRaw, nodes);
  scenario.cluster = std::move(cluster);
  return scenario;
}

std::int64_t iteration_ps(const Scenario& scenario) {
  return simulate(scenario, expand(scenario)).iteration.count();
}

TEST_CASE("a slow link is as slow as a cluster of such links, and slows nobody else") {
  for (const char* topology : {"ps", "ring", "allreduce"}) {
    CAPTURE(topology);
    Scenario slow = raw(topology, test_cluster(2));
    Scenario all = slow;
    slow.cluster.slow_links = {{.a = 0, .b = 1, .bandwidth = kBandwidth / 3, .latency_s = 1e-3}};
    all.cluster.link.bandwidth = all.cluster.link.bandwidth_both_ways = kBandwidth / 3;
    all.cluster.link.latency_s = 1e-3;
    CHECK(iteration_ps(slow) == iteration_ps(all));

    const Scenario four = raw(topology, test_cluster(4));
    Scenario as_fast = four, slower = four;
    as_fast.cluster.slow_links = {{.a = 1, .b = 2, .bandwidth = kBandwidth, .latency_s = 0}};
    slower.cluster.slow_links = {{.a = 1, .b = 2, .bandwidth = kBandwidth / 3, .latency_s = 1e-3}};
    CHECK(iteration_ps(as_fast) == iteration_ps(four));
    CHECK(iteration_ps(slower) > iteration_ps(four));
    CHECK_THAT(difference_between_nodes(slower.cluster), Contains("slower"));
  }
  Scenario ring = raw("ring", test_cluster(4));
  ring.cluster.slow_links = {{.a = 0, .b = 2, .bandwidth = kBandwidth / 3, .latency_s = 1e-3}};
  Scenario without = ring;
  without.cluster.slow_links.clear();
  CHECK(iteration_ps(ring) == iteration_ps(without));  // no message of a ring goes from 0 to 2
}

TEST_CASE("a cluster file says which links are slow") {
  const tests::TemporaryFolder folder;
  const costs::Profile profile = costs::read_profile("sosp21");
  const auto read = [&](const std::string& text) {
    return costs::read_cluster(folder.file("c.yaml", "nodes: 4\n" + text), profile, 0);
  };
  const costs::Cluster cluster =
      read("link: {bandwidth: 10Gbps}\nslow_links: [{between: [3, 1], bandwidth: 1Gbps}]\n");
  REQUIRE(cluster.slow_links.size() == 1);
  CHECK(cluster.slow_links[0] == costs::SlowLink{1, 3, 125e6, std::nullopt});
  CHECK_FALSE(costs::is_uniform(cluster));
  for (const char* wrong :
       {"[{between: [0, 4]}]", "[{between: [1, 1]}]", "[{between: [0]}]", "[{between: 1}]",
        "[{bandwidth: 1Gbps}]", "[{between: [0, 1], bandwidth: 1000Gbps}]",
        "[{between: [0, 1]}, {between: [1, 0]}]", "[{between: [0, 1], latency: 0s}]",
        "[{between: [0, 1], loss: 2}]"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(read(std::string("slow_links: ") + wrong + "\n"), io::InputError);
  }
  CHECK_THROWS_AS(read("rack: {hosts: 2}\nslow_links: [{between: [0, 1]}]\n"), io::InputError);
}

TEST_CASE("a ring through two hosts of two nodes goes at the pace of the hosts' links") {
  // Messages 0 → 1 and 2 → 3 take a = 1 + 32 us; 1 → 2 and 3 → 0 take b = 5 + 128 us. Each hop
  // carries 2(N-1) = 6 messages. 1 → 2 is never idle: its first message is ready at 0, and each
  // later one has arrived over 0 → 1 in time, since a < b. So T = 6·b.
  const Scenario scenario = raw("ring", hosts_of(4, 2));
  const std::int64_t expected = 6 * (kOverhead + kSlicePs);
  CHECK(iteration_ps(scenario) == expected);

  const casync::TaskGraph graph = expand(scenario);
  const Utilisation use =
      utilisation(scenario, graph, simulate(scenario, graph, Timelines::kRecorded));
  const double b_share = 1.0 / 6, a_share = 33e6 / static_cast<double>(expected);
  REQUIRE(use.host_links.size() == 2);
  for (const SharedLinkUse& nic : use.host_links) {
    CHECK(nic.out.messages == 6);
    CHECK(nic.out.bytes == 6 * 4 * kSlice);
    CHECK(nic.in.utilisation == Approx(6 * b_share));
    CHECK(nic.out.busy == Approx(1));
    CHECK(nic.both_ways == Approx(1));
  }
  CHECK(use.nodes[0].egress.messages == 6);
  CHECK(use.nodes[0].egress.utilisation == Approx(6 * a_share));
  CHECK(use.nodes[1].ingress.bytes == 6 * 4 * kSlice);
  CHECK(use.nodes[1].egress.messages == 0);
  CHECK(use.rack_links.empty());
}

TEST_CASE("nodes that share a host share its link") {
  // All-to-all: each of a host's 2 nodes sends to 2 nodes of the other host. These 4 flows share
  // the host's link: 4·(o + s/B) there, and as long back. Messages within a host end earlier.
  CHECK(iteration_ps(raw("ps", hosts_of(4, 2))) == 2 * 4 * (kOverhead + kSlicePs));
  // 3 hosts of 2: 2 nodes send to 4 nodes on other hosts each.
  CHECK(iteration_ps(raw("ps", hosts_of(6, 2))) == 2 * 8 * (kOverhead + kSlicePs));
  // One host: every node sends 3 flows through its port: 3·(o_h + s/B_h), twice.
  CHECK(iteration_ps(raw("ps", hosts_of(4, 4))) == 2 * 3 * (1 * kUs + kSlicePs / 4));
}

TEST_CASE("an oversubscribed core slows what goes between racks") {
  // 2 racks of 2 hosts with one node each. With oversubscription 4, messages that leave a rack
  // share 2·B/4 = B/2. Alone, one takes o + s/(B/2); 4 at once take 4·(o + 2s/B) there, and as long
  // back. A flow within a rack has the rest of its node's link and ends earlier.
  costs::Cluster cluster = test_cluster(4);
  cluster.racks = {costs::RackCosts{.hosts = 2, .oversubscription = 4}};
  const Scenario scenario = raw("ps", cluster);
  const std::int64_t expected = 2 * 4 * (kOverhead + 2 * kSlicePs);
  CHECK(iteration_ps(scenario) == expected);

  const casync::TaskGraph graph = expand(scenario);
  const Utilisation use =
      utilisation(scenario, graph, simulate(scenario, graph, Timelines::kRecorded));
  REQUIRE(use.rack_links.size() == 2);
  for (const SharedLinkUse& rack : use.rack_links) {
    CHECK(rack.out.bytes == 2 * 4 * 4 * kSlice);
    CHECK(rack.out.utilisation == Approx(1));
    CHECK(rack.in.busy == Approx(1));
  }
  // A node's link carries two of these messages at twice the rack's rate, and one slice for its
  // neighbour in the rack: 2·(2·(5 + 256)/2 + 5 + 128) us of T.
  CHECK(use.nodes[0].egress.utilisation ==
        Approx(2 * ((5 + 256) + (5 + 128)) * kUs / static_cast<double>(expected)));
  CHECK(use.host_links.empty());

  // Without oversubscription, 3 flows share every node's link, as without racks.
  cluster.racks.front().oversubscription = 1;
  CHECK(iteration_ps(raw("ps", cluster)) == 2 * 3 * (kOverhead + kSlicePs));
}

TEST_CASE("latency adds up along the path") {
  // Two nodes: 2·(o + s/B + L), where L grows from within a host to between hosts to between racks.
  costs::Cluster together = hosts_of(2, 2);
  together.host_link->latency_s = 2e-6;
  together.link.latency_s = 7e-6;
  CHECK(iteration_ps(raw("ring", together)) == 2 * (1 * kUs + kSlicePs / 4 + 2 * kUs));
  costs::Cluster apart = together;
  apart.host = {0, 1};
  CHECK(iteration_ps(raw("ring", apart)) == 2 * (kOverhead + kSlicePs + 7 * kUs));
  apart.racks = {costs::RackCosts{.hosts = 1, .latency_s = 30e-6}};
  CHECK(iteration_ps(raw("ring", apart)) == 2 * (kOverhead + kSlicePs + 37 * kUs));
}

TEST_CASE("an all-reduce goes at the pace of the slowest step of a ring through all nodes") {
  // Without measurements it is an ideal ring: 2(N-1)·(o + S/(N·B)).
  Scenario scenario = raw("allreduce", hosts_of(4, 2));
  CHECK(iteration_ps(scenario) == 6 * (kOverhead + kSlicePs));
  scenario.cluster.racks = {costs::RackCosts{.hosts = 1, .oversubscription = 2}};
  CHECK(iteration_ps(scenario) == 6 * (kOverhead + 2 * kSlicePs));
  scenario.cluster = hosts_of(4, 4);
  CHECK(iteration_ps(scenario) == 6 * (1 * kUs + kSlicePs / 4));
}

TEST_CASE("network port and folding know nodes that are alike, and refuse others") {
  Scenario scenario = raw("ring", hosts_of(4, 2));
  scenario.network = Network::kPort;
  CHECK_THROWS_WITH(iteration_ps(scenario), Contains("take network fair"));
  CHECK(expand(scenario, Fold::kExactly).why_whole ==
        "nodes differ in which others share their host or rack");
  // Nodes are alike if all are on one host, or each has a host of its own.
  for (const std::uint32_t nodes_per_host : {4, 1}) {
    for (const Network network : {Network::kPort, Network::kFair}) {
      for (const char* topology : {"ring", "ps", "allreduce"}) {
        CAPTURE(nodes_per_host, topology);
        scenario = raw(topology, hosts_of(4, nodes_per_host));
        scenario.network = network;
        scenario.cluster.host_link->bandwidth_both_ways = kHostBandwidth / 2;
        const ExpandedGraph folded = expand(scenario, Fold::kExactly);
        REQUIRE(folded.graph.folded);
        const Result one = simulate(scenario, folded.graph, Timelines::kRecorded);
        const casync::TaskGraph whole = expand(scenario);
        const Result all = simulate(scenario, whole, Timelines::kRecorded);
        CHECK(one.iteration == all.iteration);
        const Utilisation of_one = utilisation(scenario, folded.graph, one);
        const Utilisation of_all = utilisation(scenario, whole, all);
        for (std::size_t node = 0; node < 4; ++node) {
          CHECK(of_one.nodes[node].egress.bytes == of_all.nodes[node].egress.bytes);
        }
        for (std::size_t host = 0; host < of_all.host_links.size(); ++host) {
          CHECK(of_one.host_links[host].in.bytes == of_all.host_links[host].in.bytes);
          CHECK(of_one.host_links[host].out.busy == Approx(of_all.host_links[host].out.busy));
        }
      }
    }
  }
}

TEST_CASE("impossible hierarchies are refused") {
  costs::Cluster cluster = hosts_of(4, 2);
  cluster.host_link->bandwidth = 0;
  CHECK_THROWS_WITH(iteration_ps(raw("ring", cluster)), Contains("host_link: bandwidth"));
  cluster = hosts_of(4, 2);
  cluster.racks = {costs::RackCosts{.hosts = 1, .oversubscription = 0}};
  CHECK_THROWS_WITH(iteration_ps(raw("ring", cluster)), Contains("oversubscription"));
  cluster.racks = {costs::RackCosts{.hosts = 0}};
  CHECK_THROWS_WITH(iteration_ps(raw("ring", cluster)), Contains("rack: hosts"));
  cluster.racks = {costs::RackCosts{.hosts = 1}};
  cluster.host_link.reset();
  CHECK_THROWS_WITH(iteration_ps(raw("ring", cluster)), Contains("need a host_link"));
  cluster = hosts_of(4, 2);
  cluster.link.burst_bytes = 1;
  CHECK_THROWS_WITH(iteration_ps(raw("ring", cluster)), Contains("burst: 0B"));
}

TEST_CASE("what a faster host link or core would bring is told") {
  const auto changes = [](const Scenario& scenario) {
    const casync::TaskGraph graph = expand(scenario);
    std::map<std::string, double> by_name;
    const Picoseconds iteration = simulate(scenario, graph).iteration;
    for (const Sensitivity& row : sensitivities(scenario, graph, iteration)) {
      by_name[std::string(row.name)] = static_cast<double>(row.change.count());
    }
    return by_name;
  };
  // Within one host, T = 6·(o_h + s/B_h). A host link with 10 % more bandwidth saves 1/11 of the
  // second term; 10 % less overhead saves 1/10 of the first.
  const auto within = changes(raw("ring", hosts_of(4, 4)));
  CHECK(within.at("host_link") == Approx(-6 * kSlicePs / 4 / 11.0).epsilon(1e-6));
  CHECK(within.at("bandwidth") == 0);
  CHECK(within.at("overhead") == Approx(-6 * kUs / 10.0).epsilon(1e-6));
  CHECK(within.at("rack") == 0);
  // Between racks T = 8·(o + 2s/B). The rack counts o as bytes, but o does not get shorter.
  costs::Cluster racks = test_cluster(4);
  racks.racks = {costs::RackCosts{.hosts = 2, .oversubscription = 4}};
  CHECK(changes(raw("ps", racks)).at("rack") == Approx(-8 * 2 * kSlicePs / 11.0).epsilon(1e-6));
}

TEST_CASE("keys of the hierarchy that change nothing are named") {
  const tests::TemporaryFolder folder;
  requests::SimulateRequest request;
  request.plan = "none";
  request.nodes = 4;
  request.machines.cluster = folder.path("cluster.yaml");
  const auto warn = [&](const std::string& yaml, Network network = Network::kFair) {
    folder.file("cluster.yaml", yaml);
    Scenario scenario = raw("ring", test_cluster(4));
    scenario.network = network;
    scenario.cluster = costs::read_cluster(request.machines.cluster, scenario.profile, 4);
    const casync::TaskGraph graph = expand(scenario);
    std::string text;
    for (const std::string& sentence : requests::without_effect(
             request, scenario, graph, simulate(scenario, graph, Timelines::kRecorded))) {
      text += sentence + "\n";
    }
    return text;
  };
  CHECK(warn("nodes_per_host: 2\nhost_link: {bandwidth: 4GB/s, overhead: 1us}").empty());
  CHECK_THAT(warn("host_link: {bandwidth: 4GB/s}"),
             Contains("host_link.bandwidth has no effect: no two nodes on one host"));
  CHECK_THAT(warn("nodes_per_host: 4\nhost_link: {bandwidth: 4GB/s}\nlink: {bandwidth: 1GB/s}"),
             Contains("link.bandwidth has no effect") && !Contains("host_link.bandwidth has"));
  CHECK(warn("rack: {hosts: 2, oversubscription: 4, latency: 5us}").empty());
  CHECK_THAT(warn("rack: {hosts: 4, oversubscription: 4}"),
             Contains("rack.oversubscription has no effect: no message goes from one rack"));
  // A key gets no warning if the changed cluster with which it is compared cannot be simulated:
  // nodes on one host without a host link, or links that nodes share with network port.
  CHECK(warn("nodes_per_host: 1\nrack: {hosts: 1, oversubscription: 4}").empty());
  CHECK_THAT(warn("rack: {hosts: 4, oversubscription: 4}", Network::kPort),
             Contains("rack.oversubscription has no effect") && !Contains("rack.hosts"));
  CHECK_THAT(
      warn("nodes_per_host: 4\nhost_link: {bandwidth: 4GB/s}\nrack: {hosts: 2}", Network::kPort),
      !Contains("nodes_per_host"));
}

}  // namespace
}  // namespace hipress::sim
