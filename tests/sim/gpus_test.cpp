#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <vector>

#include "io/error.hpp"
#include "requests/effect.hpp"
#include "sim/critical_path.hpp"
#include "sim/folding.hpp"
#include "sim/sensitivity.hpp"
#include "sim/utilisation.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/sim/fixtures.hpp"

namespace hipress::sim {
namespace {

using casync::Kind;
using casync::kRaw;
using casync::TaskId;
using Catch::Matchers::Contains;

/// The scenario with `gpus` GPUs per node, whose links have α_i = 1 us and B_i = 4 GB/s.
Scenario with_gpus(Scenario scenario, std::uint32_t gpus) {
  scenario.plan.gpus_per_node = scenario.cluster.gpus_per_node = gpus;
  scenario.cluster.gpu_link = {1e-6, 4e9};
  return scenario;
}

TEST_CASE("a hierarchical ring takes what the closed form says") {
  // With K = N, T is 2(G-1)·α_i + 2(G-1)/G·S/B_i among a node's GPUs (reduction and broadcast), and
  // 2(N-1)·α_e + 2(N-1)/N·S/B_nic for the ring between nodes.
  for (const std::int64_t gpus : {1, 2, 4, 8}) {
    for (const std::int64_t nodes : {1, 2, 3, 4, 8}) {
      for (const Network network : {Network::kPort, Network::kFair}) {
        CAPTURE(gpus, nodes);
        const std::int64_t elements = 32 * 1000 * nodes;
        const std::int64_t bytes = 4 * elements;
        Scenario scenario =
            with_gpus(test_scenario(test_model({elements}), "ring", nodes, kRaw, nodes), gpus);
        scenario.network = network;
        const std::int64_t inside = (gpus - 1) * kUs + (gpus - 1) * bytes / gpus * kPsPerByte / 4;
        const std::int64_t between = (nodes - 1) * (kOverhead + bytes / nodes * kPsPerByte);
        const std::int64_t expected = 2 * inside + 2 * between;
        const casync::TaskGraph whole = expand(scenario);
        casync::check(whole);
        CHECK(simulate(scenario, whole).iteration.count() == expected);
        const ExpandedGraph folded = expand(scenario, Fold::kExactly);
        CHECK(folded.graph.folded == (nodes > 1));
        CHECK(simulate(scenario, folded.graph).iteration.count() == expected);
      }
    }
  }
}

TEST_CASE("an encode that divides costs more, unless by a power of two") {
  // ps with one partition on N nodes: N − 1 workers encode, then the server, which divides by N.
  costs::Profile profile = test_profile();
  profile.codecs["byte"].encode = {.pieces = {{.b_s = 1e-6}}};
  profile.codecs["byte"].encode_factor_quotients = 1.5;
  const TaskCosts costs(profile, {byte_codec()});
  for (const std::uint32_t nodes : {2, 3, 4, 6}) {
    const casync::TaskGraph graph = test_graph(test_model({10}), "ps", nodes, 0, 1);
    std::map<std::int64_t, int> encodes;  // number of encodes by their time in microseconds
    for (casync::TaskId id = 0; id < graph.tasks(); ++id) {
      const casync::Task& task = graph[id];
      if (task.kind != Kind::kEncode && task.kind != Kind::kDecode) continue;
      const auto us = costs.codec_time(task, graph.divisor).count() / kUs;
      if (task.kind == Kind::kEncode) ++encodes[us];
      if (task.kind == Kind::kDecode) CHECK(us == costs.codec_time(task, 1).count() / kUs);
    }
    CAPTURE(nodes);
    const int workers = static_cast<int>(nodes) - 1;
    CHECK(encodes == (nodes == 3 || nodes == 6 ? std::map<std::int64_t, int>{{10, workers}, {15, 1}}
                                               : std::map<std::int64_t, int>{{10, workers + 1}}));
  }
}

TEST_CASE("codecs work on all GPUs of a node at once") {
  // 33 elements on 8 GPUs: shards have ceil(33/8) = 5, and take 1 us per element.
  costs::Profile profile = test_profile();
  profile.merge = {.pieces = {{.b_s = 1e-6}}};
  profile.codecs["byte"].encode = {.pieces = {{.b_s = 1e-6}}};
  const TaskCosts costs(profile, {byte_codec()});
  for (const Kind kind : {Kind::kEncode, Kind::kMerge}) {
    const casync::Task task = {.amount = 33, .kind = kind, .algorithm = 0};
    CHECK(costs.codec_time(task, 2, 8).count() == 5 * kUs);
    CHECK(costs.codec_time(task, 2).count() == 33 * kUs);
  }
}

TEST_CASE("an all-reduce in half precision casts on all GPUs of a node at once") {
  // 66 bytes are 33 elements: shards on 8 GPUs have 5, and take 1 us per element to encode and 2 us
  // to decode. The library takes 7 us.
  costs::Profile profile = test_profile();
  profile.codecs["byte"].encode = {.pieces = {{.b_s = 1e-6}}};
  profile.codecs["byte"].decode = {.pieces = {{.b_s = 2e-6}}};
  profile.all_reduce[2] = constant(7 * kUs);
  const TaskCosts costs(profile, {half_codec()});
  const casync::Task task = {.amount = 66, .kind = Kind::kAllReduce, .algorithm = 0};
  CHECK(costs.all_reduce_time(task, 2, profile.link, 8).count() == (7 + 5 + 10) * kUs);
  CHECK(costs.all_reduce_time(task, 2, profile.link).count() == (7 + 33 + 66) * kUs);
}

TEST_CASE("every gradient is reduced before it is synchronised, and broadcast when it is") {
  for (const char* topology : {"ps", "ring", "allreduce"}) {
    for (const bool compressed : {false, true}) {
      for (const bool pipelining : {true, false}) {
        for (const std::uint32_t nodes : {1u, 2u, 4u}) {
          CAPTURE(topology, compressed, pipelining, nodes);
          const std::int8_t algorithm = compressed ? 0 : kRaw;
          Scenario scenario = with_gpus(
              test_scenario(test_model({3200, 77, 9999, 64}), topology, nodes, algorithm, 2), 4);
          if (std::string(topology) == "allreduce") scenario.plan.algorithms = {half_codec()};
          scenario.plan.pipelining = pipelining;
          scenario.plan.bulk.threshold_bytes = 1000;
          scenario.plan.batch.threshold_bytes = 20000;
          const casync::TaskGraph graph = expand(scenario);
          casync::check(graph);
          const Result result = simulate(scenario, graph, Timelines::kRecorded);
          const std::vector<Picoseconds>& start = result.timeline.start;
          const std::vector<Picoseconds>& end = result.timeline.end;
          int reduces = 0, broadcasts = 0;
          for (TaskId local = 0; local < graph.tasks(); ++local) {
            const casync::Task& task = graph[local];
            reduces += task.kind == Kind::kLocalReduce;
            broadcasts += task.kind == Kind::kLocalBroadcast;
            if (!casync::is_local(task)) continue;
            CHECK(end[local] > start[local]);
            for (TaskId id = 0; id < graph.tasks(); ++id) {
              const casync::Task& other = graph[id];
              if (other.node != task.node || other.gradient != task.gradient || id == local) {
                continue;
              }
              if (casync::is_computation(other) || other.kind == Kind::kJoin) continue;
              if (task.kind == Kind::kLocalReduce && other.kind != Kind::kRecv) {
                CHECK(start[id] >= end[local]);
              }
              // Sends of the result to other nodes may still run.
              if (task.kind == Kind::kLocalBroadcast && other.kind != Kind::kSend) {
                CHECK(end[id] <= start[local]);
              }
            }
          }
          // Three units: two gradients, and a bulk group of two more.
          CHECK(reduces == 3 * static_cast<int>(nodes));
          CHECK(broadcasts == reduces);
          CHECK_NOTHROW(critical_path(graph, result.timeline));
        }
      }
    }
  }
}

TEST_CASE("back to back, forward waits for the broadcast") {
  // One node of 2 GPUs, S = 128 kB: a reduction or broadcast takes 1 + 16 us. An iteration takes
  // forward (10 us), backward (20 us), a reduction and a broadcast.
  models::Model model = test_model({32000});
  model.forward_s = 10e-6;
  model.gradients[0].ready_s = 20e-6;
  Scenario scenario = with_gpus(test_scenario(model, "ring", 1, kRaw, 1), 2);
  scenario.iterations = 4;
  CHECK(iteration_time(scenario, expand(scenario)).count() == (10 + 20 + 2 * 17) * kUs);
}

TEST_CASE("utilisation, critical path and sensitivity know the exchange inside nodes") {
  // Two nodes of 2 GPUs, raw ring, K = 2, S = 128 kB: inside nodes 2·17 us, between them 2·(5 +
  // 64).
  const Scenario scenario = with_gpus(test_scenario(test_model({32000}), "ring", 2, kRaw, 2), 2);
  const casync::TaskGraph graph = expand(scenario);
  const Result result = simulate(scenario, graph, Timelines::kRecorded);
  const double iteration = 2 * 17 + 2 * 69;
  REQUIRE(casync::to_seconds(result.iteration) == Approx(iteration * 1e-6));
  const Utilisation use = utilisation(scenario, graph, result);
  CHECK(use.nodes[1].local == Approx(2 * 17 / iteration));
  CHECK(use.nodes[1].codec == 0);
  const PathTimes times =
      path_times(graph, result.timeline, critical_path(graph, result.timeline), Picoseconds{});
  CHECK(times.by_kind[static_cast<std::size_t>(Kind::kLocalReduce)].count() == 17 * kUs);
  CHECK(times.by_kind[static_cast<std::size_t>(Kind::kLocalBroadcast)].count() == 17 * kUs);
  for (const Sensitivity& row : sensitivities(scenario, graph, result.iteration)) {
    const double change = static_cast<double>(row.change.count()) / kUs;
    if (row.name == "gpu_link") CHECK(change == Approx(-2 * 16 / 11.0).epsilon(1e-6));
    if (row.name == "overhead") CHECK(change == Approx(-2 * (1 + 5) / 10.0).epsilon(1e-6));
  }
}

TEST_CASE("GPUs of a node are described, drawn and checked like other tasks") {
  const Scenario scenario = with_gpus(test_scenario(test_model({320}), "ring", 2, kRaw, 1), 2);
  const casync::TaskGraph graph = expand(scenario);
  std::vector<std::string> names;
  for (TaskId id = 0; id < graph.tasks(); ++id) names.push_back(casync::describe(graph, id));
  const auto has = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  CHECK(has("LocalReduce g0 on node 1"));
  CHECK(has("LocalBroadcast g0 on node 0"));
}

TEST_CASE("a plan is for nodes of as many GPUs as the cluster's have") {
  Scenario scenario = with_gpus(test_scenario(test_model({320}), "ring", 2, kRaw, 1), 4);
  const casync::TaskGraph graph = expand(scenario);
  scenario.plan.gpus_per_node = 1;
  CHECK_THROWS_WITH(simulate(scenario, graph), Contains("nodes of 1 GPUs, the cluster's have 4"));
  scenario.plan.gpus_per_node = 4;
  scenario.cluster.gpu_link.bandwidth = 0;
  CHECK_THROWS_WITH(simulate(scenario, graph), Contains("gpu_link: bandwidth must be positive"));
  scenario.plan.gpus_per_node = 0;
  CHECK_THROWS_AS(expand(scenario), std::invalid_argument);
}

TEST_CASE("a link between GPUs that nodes do not have is named") {
  const tests::TemporaryFolder folder;
  requests::SimulateRequest request;
  request.plan = "none";
  request.nodes = 2;
  request.machines.cluster = folder.path("cluster.yaml");
  const auto warnings = [&](const std::string& yaml) {
    folder.file("cluster.yaml", yaml);
    Scenario scenario = test_scenario(test_model({3200}), "ring", 2, kRaw, 2);
    scenario.cluster = costs::read_cluster(request.machines.cluster, scenario.profile, 2);
    scenario.plan.gpus_per_node = scenario.cluster.gpus_per_node;
    const casync::TaskGraph graph = expand(scenario);
    return requests::without_effect(request, scenario, graph,
                                    simulate(scenario, graph, Timelines::kRecorded));
  };
  CHECK(warnings("gpus_per_node: 2\ngpu_link: {bandwidth: 4GB/s, overhead: 1us}").empty());
  const auto unused = warnings("gpu_link: {bandwidth: 4GB/s}");
  REQUIRE(unused.size() == 1);
  CHECK_THAT(unused[0], Contains("gpu_link.bandwidth has no effect: gpus_per_node is 1"));
}

}  // namespace
}  // namespace hipress::sim
