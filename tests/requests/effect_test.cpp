#include "requests/effect.hpp"

#include <catch2/catch.hpp>

#include "plans/plan_file.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/sim/fixtures.hpp"

namespace hipress::requests {

using namespace sim;

namespace {

using casync::kRaw;
using Catch::Matchers::Contains;

SimulateRequest request_of(const io::Document& said) {
  SimulateRequest made;
  read(said, fields(made));
  return made;
}

/// Sentences about a scenario. Its plan must be the request's.
std::vector<std::string> warnings(const Scenario& scenario, const SimulateRequest& request) {
  const casync::TaskGraph graph = casync::expand(scenario.model, scenario.plan);
  return without_effect(request, scenario, graph, simulate(scenario, graph, Timelines::kRecorded));
}

TEST_CASE("an algorithm that nothing is compressed with is named") {
  SimulateRequest given = request_of({{"plan", "none"}, {"algorithm", "onebit"}});
  const Scenario raw = test_scenario(test_model({3200}), "ps", 2, kRaw, 1);
  REQUIRE(warnings(raw, given).size() == 1);
  CHECK_THAT(warnings(raw, given)[0], Contains("`algorithm` has no effect") && Contains("'none'"));
  // The plan "onebit" compresses with onebit, whatever `algorithm` is.
  given.plan = "onebit";
  CHECK(warnings(test_scenario(test_model({3200}), "ps", 2, 0, 1, "onebit"), given).size() == 1);
  given.plan = "all";
  CHECK(warnings(test_scenario(test_model({3200}), "ps", 2, 0, 1, "onebit"), given).empty());
  given.given.clear();
  given.plan = "none";
  CHECK(warnings(raw, given).empty());
}

TEST_CASE("one node needs no network, no topology, and without codecs no profile") {
  const SimulateRequest given = request_of(
      {{"plan", "none"}, {"topology", "ps"}, {"profile", "v100-100g"}, {"network", "fair"}});
  const auto alone = warnings(test_scenario(test_model({3200}), "ps", 1, kRaw, 1), given);
  REQUIRE(alone.size() == 3);
  CHECK_THAT(alone[0], Contains("`topology` has no effect: a job of one node"));
  CHECK_THAT(alone[1], Contains("`profile` has no effect: nothing is sent"));
  CHECK_THAT(alone[2], Contains("`network` has no effect: a job of one node"));
  const auto empty = warnings(test_scenario(test_model({}), "ps", 3, kRaw, 1), given);
  REQUIRE(empty.size() == 3);
  CHECK_THAT(empty[0], Contains("no gradients"));
}

TEST_CASE("a network matters where messages meet, and only there") {
  const SimulateRequest given = request_of({{"plan", "none"}, {"network", "fair"}});
  // With two nodes, there is one message at a time. With four nodes and two gradients, messages
  // meet, and fair sharing delays both.
  const auto pair = warnings(test_scenario(test_model({3200}), "ps", 2, kRaw, 1), given);
  REQUIRE(pair.size() == 1);
  CHECK_THAT(pair[0], Contains("`network`") && Contains("port gives every task the same times"));
  CHECK(warnings(test_scenario(test_model({3200, 6400}), "ps", 4, kRaw, 1), given).empty());
}

/// Scenario whose gradients are all ready at once, with the request's plan and options.
Scenario planned(const SimulateRequest& given, const std::string& topology, std::uint32_t nodes,
                 const std::vector<std::int64_t>& sizes) {
  Scenario scenario = test_scenario(test_model(sizes), topology, nodes, 0, 1, "onebit");
  const plans::PlanContext context{scenario.model, topology, nodes};
  plans::ResolvedPlan resolved = plans::resolve_plan(given.plan, context);
  plans::apply(given.plan_options, context, resolved);
  scenario.plan = std::move(resolved.plan);
  return scenario;
}

/// All sentences about a ring of two nodes, one per line.
std::string about_options(const std::string& plan, const io::Document& options,
                          const std::vector<std::int64_t>& sizes) {
  io::Document said = options;
  said["plan"] = plan;
  const SimulateRequest given = request_of(said);
  std::string text;
  for (const std::string& sentence : warnings(planned(given, "ring", 2, sizes), given)) {
    text += sentence + "\n";
  }
  return text;
}

const std::vector<std::int64_t> kTwo = {3200, 6400};  // 12.8 and 25.6 kB

TEST_CASE("bulk groups that are not made, or would be anyway, are named") {
  CHECK(about_options("none", {{"bulk_threshold", "1KiB"}}, kTwo) ==
        "`bulk_threshold` has no effect: the plan is the same without it\n");
  CHECK(about_options("none", {{"bulk_threshold", "64KiB"}}, kTwo).empty());
  CHECK(about_options("none", {{"bulk_threshold", "64KiB"}, {"bulk_wait", "1s"}}, kTwo) ==
        "`bulk_wait` has no effect: the plan is the same without it\n");
  CHECK(about_options("none", {{"bulk_threshold", "64KiB"}, {"bulk_limit", "1MiB"}}, kTwo) ==
        "`bulk_limit` has no effect: the plan is the same without it\n");
  // A group of both would exceed the limit, so each is sent alone.
  CHECK(about_options("none", {{"bulk_threshold", "64KiB"}, {"bulk_limit", "38kB"}}, kTwo) ==
        "`bulk_threshold` has no effect: the plan is the same without it\n");
  CHECK(about_options("none", {{"no_bulk", true}}, kTwo) ==
        "`no_bulk` has no effect: the plan is the same without it\n");
}

TEST_CASE("choices that the plan makes already are named") {
  CHECK(about_options("all", {{"no_selection", true}}, kTwo) ==
        "`no_selection` has no effect: the plan is the same without it\n");
  CHECK(about_options("none", {{"no_selection", true}}, kTwo).empty());
  CHECK(about_options("all", {{"raw_allreduce", true}}, kTwo) ==
        "`raw_allreduce` has no effect: the plan is the same without it\n");
  CHECK(about_options("none", {{"raw_allreduce", true}}, kTwo).empty());
}

TEST_CASE("batches and steps that change no time are named") {
  // With one gradient, a node encodes one slice at a time, so there is no batch.
  CHECK(about_options("all", {{"batch_threshold", "64KiB"}}, {3200}) ==
        "`batch_threshold` has no effect: every task has the same times without it\n");
  CHECK(about_options("all", {{"batch_threshold", "64KiB"}}, kTwo).empty());
  CHECK(about_options("all", {{"batch_threshold", "64KiB"}, {"batch_wait", "1s"}}, kTwo) ==
        "`batch_wait` has no effect: every task has the same times without it\n");
  CHECK(about_options("none", {{"no_pipelining", true}}, {3200}) ==
        "`no_pipelining` has no effect: every task has the same times without it\n");
  CHECK(about_options("all", {{"no_pipelining", true}}, kTwo).empty());
}

TEST_CASE("a topology by which nothing goes is named") {
  SimulateRequest given =
      request_of({{"plan", "none"}, {"raw_allreduce", true}, {"topology", "ring"}});
  CHECK(warnings(planned(given, "ring", 3, kTwo), given) ==
        std::vector<std::string>{"`topology` has no effect: no gradient uses it; the tasks are "
                                 "the same with ps, allreduce, allgather"});
  given.plan_options = {};
  given.given.erase("raw_allreduce");
  CHECK(warnings(planned(given, "ring", 3, kTwo), given).empty());
  given.plan = "all";
  CHECK(warnings(planned(given, "ring", 3, kTwo), given).empty());
}

TEST_CASE("draws that are not made, or are all the same, are named") {
  SimulateRequest given = request_of({{"plan", "none"}, {"seed", 1}, {"jobs", 1}});
  Scenario scenario = planned(given, "ring", 2, kTwo);
  CHECK(warnings(scenario, given) ==
        std::vector<std::string>{"`seed` has no effect: without `jitter` nothing is drawn",
                                 "`jobs` has no effect: there is one replica"});
  const auto with_jitter = [&](const char* jitter) {
    return warnings(
        scenario,
        request_of(
            {{"plan", "none"}, {"seed", 1}, {"jobs", 1}, {"replicas", 2}, {"jitter", jitter}}));
  };
  CHECK(with_jitter("uniform:0") ==
        std::vector<std::string>{"`jitter` has no effect: all its factors are 1",
                                 "`seed` has no effect: all factors of the jitter are the same"});
  CHECK(with_jitter("uniform:0.1").empty());
}

TEST_CASE("what was not checked because that takes long is named") {
  const tests::TemporaryFolder folder;
  const SimulateRequest given =
      request_of({{"plan", "all"},
                  {"nnodes", 2},
                  {"cluster", folder.file("cluster.yaml", "cores_per_host: 64\n")},
                  {"network", "fair"},
                  {"transfer_order", "ready"},
                  {"bulk_threshold", "1B"},
                  {"no_pipelining", true}});
  const Scenario scenario = planned(given, "ring", 2, kTwo);
  const casync::TaskGraph graph = expand(scenario);
  const Result result = simulate(scenario, graph, Timelines::kRecorded);
  const auto sentences = without_effect(given, scenario, graph, result, graph.tasks() - 1);
  REQUIRE(sentences.size() == 2);
  CHECK_THAT(sentences[0], Contains("`bulk_threshold` has no effect"));  // needs no simulation
  CHECK(sentences[1] == std::to_string(graph.tasks()) +
                            " tasks take too long to simulate again; effects were not checked for "
                            "`network`, `transfer_order`, `no_pipelining`, `cluster`");
  CHECK(without_effect(given, scenario, graph, result, graph.tasks()).back().starts_with("/"));
}

TEST_CASE("keys of a cluster file that change nothing are named") {
  const tests::TemporaryFolder folder;
  SimulateRequest given = request_of({{"plan", "none"}, {"cluster", folder.path("cluster.yaml")}});
  const auto warn = [&](const std::string& yaml, std::uint32_t nodes) {
    folder.file("cluster.yaml", yaml + "\n");
    given.nodes = nodes;
    Scenario scenario = test_scenario(test_model({3200}), "ps", nodes, kRaw, 1);
    scenario.cluster = costs::read_cluster(given.machines.cluster, scenario.profile, nodes);
    std::string text;
    for (const std::string& sentence : warnings(scenario, given)) text += sentence + "\n";
    return text;
  };
  CHECK(warn("link: {bandwidth: 1GB/s, latency: 5us, overhead: 0us}", 2).empty());
  CHECK_THAT(warn("link: {bandwidth: 1GB/s}", 1),
             Contains("cluster.yaml: link.bandwidth has no effect: a job of one node"));
  CHECK_THAT(warn("link: {core_s_per_byte: 1e-9}\nnodes_per_host: 2", 2),
             Contains("nodes_per_host has no effect: nodes on one host share neither a link") &&
                 Contains("link.core_s_per_byte has no effect: cores_per_host is 0"));
  // No slice has casync::kLongElements, so no message interrupts a long codec task.
  CHECK_THAT(warn("link: {core_factor_interrupting: 2}", 2),
             Contains("link.core_factor_interrupting has no effect"));
  CHECK_THAT(warn("core_turn: 1ms", 2), Contains("core_turn has no effect: cores_per_host is 0"));
  // 64 cores limit nothing here: two threads use at most 2 of them.
  CHECK_THAT(warn("cores_per_host: 64", 2), Contains("cores_per_host has no effect"));
  // compute_speed scales computation, codecs and merges, none of which takes time here.
  CHECK_THAT(warn("compute_speed: {0: 0.5}", 2), Contains("compute_speed has no effect"));
  CHECK(warn("cores_per_host: 1\nnodes_per_host: 2\nlink: {core_s_per_byte: 2e-9}", 2).empty());
}

}  // namespace
}  // namespace hipress::requests
