#include <catch2/catch.hpp>

#include "sim/effect.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/sim/fixtures.hpp"

namespace hipress::sim {
namespace {

using casync::kRaw;
using Catch::Matchers::Contains;

/// The sentences about one scenario, whose plan is the named one.
std::vector<std::string> warnings(const Scenario& scenario, const Given& given) {
  const casync::TaskGraph graph = casync::expand(scenario.model, scenario.plan);
  return without_effect(scenario, graph, simulate(scenario, graph, Timelines::kRecorded), given);
}

TEST_CASE("an algorithm that nothing is compressed with is named") {
  Given given{.plan = "none", .algorithm = "onebit", .cluster = {}};
  const Scenario raw = test_scenario(test_model({3200}), "ps", 2, kRaw, 1);
  REQUIRE(warnings(raw, given).size() == 1);
  CHECK_THAT(warnings(raw, given)[0], Contains("--algorithm has no effect") && Contains("'none'"));
  // The plan "onebit" compresses with onebit whatever --algorithm says.
  given.plan = "onebit";
  CHECK(warnings(test_scenario(test_model({3200}), "ps", 2, 0, 1, "onebit"), given).size() == 1);
  given.plan = "all";
  CHECK(warnings(test_scenario(test_model({3200}), "ps", 2, 0, 1, "onebit"), given).empty());
  given.algorithm.reset();
  given.plan = "none";
  CHECK(warnings(raw, given).empty());
}

TEST_CASE("one node needs no network, no topology, and without codecs no profile") {
  const Given given{
      .plan = "none", .algorithm = {}, .topology = true, .network = true, .profile = true};
  const auto alone = warnings(test_scenario(test_model({3200}), "ps", 1, kRaw, 1), given);
  REQUIRE(alone.size() == 3);
  CHECK_THAT(alone[0], Contains("--profile has no effect: nothing is sent"));
  CHECK_THAT(alone[1], Contains("--network has no effect: one node"));
  CHECK_THAT(alone[2], Contains("--topology has no effect: one node"));
  const auto empty = warnings(test_scenario(test_model({}), "ps", 3, kRaw, 1), given);
  REQUIRE(empty.size() == 3);
  CHECK_THAT(empty[1], Contains("no gradients"));
}

TEST_CASE("a network matters where messages meet, and only there") {
  const Given given{.plan = "none", .algorithm = {}, .network = true};
  // Two nodes: one message at a time. Four nodes, two gradients: fair sharing makes both late.
  const auto pair = warnings(test_scenario(test_model({3200}), "ps", 2, kRaw, 1), given);
  REQUIRE(pair.size() == 1);
  CHECK_THAT(pair[0], Contains("--network") && Contains("port gives every task the same times"));
  CHECK(warnings(test_scenario(test_model({3200, 6400}), "ps", 4, kRaw, 1), given).empty());
}

TEST_CASE("keys of a cluster file that change nothing are named") {
  const tests::TemporaryFolder folder;
  const Given given{.plan = "none", .algorithm = {}, .cluster = folder.path("cluster.yaml")};
  const auto warn = [&](const std::string& yaml, std::uint32_t nodes) {
    folder.file("cluster.yaml", yaml);
    Scenario scenario = test_scenario(test_model({3200}), "ps", nodes, kRaw, 1);
    scenario.cluster = costs::read_cluster(given.cluster, scenario.profile, nodes);
    std::string text;
    for (const std::string& sentence : warnings(scenario, given)) text += sentence + "\n";
    return text;
  };
  CHECK(warn("link: {bandwidth: 1GB/s, latency: 5us, overhead: 0us}", 2).empty());
  CHECK_THAT(warn("link: {bandwidth: 1GB/s}", 1),
             Contains("cluster.yaml: link.bandwidth has no effect: one node"));
  CHECK_THAT(warn("link: {core_s_per_byte: 1e-9}\nnodes_per_host: 2", 2),
             Contains("nodes_per_host has no effect: cores_per_host is 0") &&
                 Contains("link.core_s_per_byte has no effect: cores_per_host is 0"));
  // 64 cores for two threads are as good as any number.
  CHECK_THAT(warn("cores_per_host: 64", 2), Contains("cores_per_host has no effect"));
  // Without forward and backward times, and with free merges, speed is of nothing.
  CHECK_THAT(warn("compute_speed: {0: 0.5}", 2), Contains("compute_speed has no effect"));
  CHECK(warn("cores_per_host: 1\nnodes_per_host: 2\nlink: {core_s_per_byte: 2e-9}", 2).empty());
}

}  // namespace
}  // namespace hipress::sim
