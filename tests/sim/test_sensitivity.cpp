#include <catch2/catch.hpp>
#include <map>

#include "sim/effect.hpp"
#include "sim/sensitivity.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/sim/fixtures.hpp"

namespace hipress::sim {
namespace {

using casync::kRaw;
using Catch::Matchers::Contains;

Scenario scenario_of(models::Model model, std::uint32_t nodes, std::int8_t algorithm,
                     const std::string& codec = "byte") {
  casync::Algorithm known = byte_codec();
  known.name = codec;
  Scenario scenario;
  scenario.plan = {
      .strategy = "ps",
      .nodes = nodes,
      .algorithms = {known},
      .decisions = std::vector<casync::Decision>(model.gradients.size(), {algorithm, 1})};
  scenario.model = std::move(model);
  scenario.profile = test_profile();
  scenario.profile.codecs[codec] = scenario.profile.codecs["byte"];
  scenario.cluster = test_cluster(nodes);
  return scenario;
}

std::map<std::string, double> changes_us(const Scenario& scenario) {
  const casync::TaskGraph graph = casync::expand(scenario.model, scenario.plan);
  const Result result = simulate(scenario, graph);
  std::map<std::string, double> changes;
  for (const Sensitivity& row : sensitivities(scenario, graph, result.iteration)) {
    CHECK(row.change == row.iteration - result.iteration);
    changes[std::string(row.name)] = casync::to_seconds(row.change) * 1e6;
  }
  return changes;
}

TEST_CASE("each improvement shortens its own terms of a chain") {
  // A compressed pair is one chain: F + E + (o + S/B + L) + A + E + (o + S/B + L) + D with F = 22,
  // S/B = 33 (33 kB), o = 5, L = 10, E = 3, A = 4, D = 2 us. At 10 % more speed a term x loses
  // x/11, at 10 % less cost x/10.
  models::Model model = test_model({32 * 1000 + 1000});
  model.forward_s = 22e-6;
  Scenario pair = scenario_of(model, 2, 0);
  pair.cluster.link.latency_s = 10e-6;
  const auto change = changes_us(pair);
  CHECK(change.size() == improvements().size());
  CHECK(change.at("bandwidth") == Approx(-2 * 33.0 / 11).epsilon(1e-6));
  CHECK(change.at("latency") == Approx(-2 * 10.0 / 10).epsilon(1e-6));
  CHECK(change.at("overhead") == Approx(-2 * 5.0 / 10).epsilon(1e-6));
  CHECK(change.at("encode") == Approx(-2 * 3.0 / 11).epsilon(1e-6));
  CHECK(change.at("decode") == Approx(-(4 + 2) / 11.0).epsilon(1e-6));
  CHECK(change.at("compute") == Approx(-22.0 / 11).epsilon(1e-6));
  CHECK(change.at("merge") == 0);           // nothing is raw
  CHECK(change.at("transfer_cores") == 0);  // cores are not shared
}

TEST_CASE("what hides behind backward is not worth improving") {
  // Gradient 0 is ready at once and synchronised long before gradient 1, of 1 ms, is computed; that
  // one's exchange, 2·(5 + 0.128) us, is all that shows.
  models::Model model = test_model({3200, 32});
  model.gradients[1].ready_s = 1e-3;
  const auto change = changes_us(scenario_of(model, 2, kRaw));
  CHECK(change.at("bandwidth") == Approx(-2 * 0.128 / 11).epsilon(1e-4));
  CHECK(change.at("compute") == Approx(-1000.0 / 11).epsilon(1e-6));
  CHECK(change.at("encode") == 0);
}

TEST_CASE("improvements leave the scenario as it was, for one node too") {
  const auto change = changes_us(scenario_of(test_model({32}), 1, kRaw));
  for (const auto& [name, microseconds] : change) CHECK(microseconds == 0);
}

/// The sentences about one scenario, whose plan is the named one.
std::vector<std::string> warnings(const Scenario& scenario, const Given& given) {
  const casync::TaskGraph graph = casync::expand(scenario.model, scenario.plan);
  return without_effect(scenario, graph, simulate(scenario, graph, Timelines::kRecorded), given);
}

TEST_CASE("an algorithm that nothing is compressed with is named") {
  Given given{.plan = "none", .algorithm = "onebit", .cluster = {}};
  const Scenario raw = scenario_of(test_model({3200}), 2, kRaw);
  REQUIRE(warnings(raw, given).size() == 1);
  CHECK_THAT(warnings(raw, given)[0], Contains("--algorithm has no effect") && Contains("'none'"));
  // The plan "onebit" compresses with onebit whatever --algorithm says.
  given.plan = "onebit";
  CHECK(warnings(scenario_of(test_model({3200}), 2, 0, "onebit"), given).size() == 1);
  given.plan = "all";
  CHECK(warnings(scenario_of(test_model({3200}), 2, 0, "onebit"), given).empty());
  given.algorithm.reset();
  given.plan = "none";
  CHECK(warnings(raw, given).empty());
}

TEST_CASE("one node needs no network, no topology, and without codecs no profile") {
  const Given given{
      .plan = "none", .algorithm = {}, .topology = true, .network = true, .profile = true};
  const auto alone = warnings(scenario_of(test_model({3200}), 1, kRaw), given);
  REQUIRE(alone.size() == 3);
  CHECK_THAT(alone[0], Contains("--profile has no effect: nothing is sent"));
  CHECK_THAT(alone[1], Contains("--network has no effect: one node"));
  CHECK_THAT(alone[2], Contains("--topology has no effect: one node"));
  const auto empty = warnings(scenario_of(test_model({}), 3, kRaw), given);
  REQUIRE(empty.size() == 3);
  CHECK_THAT(empty[1], Contains("no gradients"));
}

TEST_CASE("a network matters where messages meet, and only there") {
  const Given given{.plan = "none", .algorithm = {}, .network = true};
  // Two nodes: one message at a time. Four nodes, two gradients: fair sharing makes both late.
  const auto pair = warnings(scenario_of(test_model({3200}), 2, kRaw), given);
  REQUIRE(pair.size() == 1);
  CHECK_THAT(pair[0], Contains("--network") && Contains("port gives every task the same times"));
  CHECK(warnings(scenario_of(test_model({3200, 6400}), 4, kRaw), given).empty());
}

TEST_CASE("keys of a cluster file that change nothing are named") {
  const tests::TemporaryFolder folder;
  const Given given{.plan = "none", .algorithm = {}, .cluster = folder.path("cluster.yaml")};
  const auto warn = [&](const std::string& yaml, std::uint32_t nodes) {
    folder.file("cluster.yaml", yaml);
    Scenario scenario = scenario_of(test_model({3200}), nodes, kRaw);
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
