// Tests CaSync's options: bulk groups, batches, all-reduces, pipelining, back-to-back iterations.

#include <catch2/catch.hpp>

#include "sim/folding.hpp"
#include "sim/utilisation.hpp"
#include "tests/sim/fixtures.hpp"

namespace hipress::sim {
namespace {

using casync::Kind;
using casync::kRaw;
using casync::TaskId;

Scenario with(Scenario scenario, Network network) {
  scenario.network = network;
  return scenario;
}

std::int64_t iteration(const Scenario& scenario) {
  return iteration_time(scenario, expand(scenario)).count();
}

constexpr Network kNetworks[] = {Network::kPort, Network::kFair};

TEST_CASE("k small gradients in one bulk group save k - 1 overheads a hop") {
  // In raw rings of N nodes with K = N, every egress sends k·2(N-1) messages of o + s each; if the
  // k gradients are one group, 2(N-1) messages of o + k·s.
  constexpr std::int64_t kGradients = 5, kNodes = 4, kElements = 32 * kNodes * 10;
  const std::int64_t s = 4 * kElements / kNodes * kPsPerByte;
  for (const Network network : kNetworks) {
    Scenario scenario =
        with(test_scenario(test_model(std::vector<std::int64_t>(kGradients, kElements)), "ring",
                           kNodes, kRaw, kNodes),
             network);
    const std::int64_t alone = iteration(scenario);
    CHECK(alone == kGradients * 2 * (kNodes - 1) * (kOverhead + s));
    scenario.plan.bulk.threshold_bytes = 4 * kElements + 1;
    CHECK(iteration(scenario) == 2 * (kNodes - 1) * (kOverhead + kGradients * s));
    CHECK(alone - iteration(scenario) == 2 * (kNodes - 1) * (kGradients - 1) * kOverhead);
  }
}

TEST_CASE("a bulk group starts when its last member is ready") {
  models::Model model = test_model({64, 64, 64});
  model.gradients[0].ready_s = 50e-6;
  model.gradients[1].ready_s = 10e-6;
  Scenario scenario = test_scenario(model, "ring", 2, kRaw, 2);
  scenario.plan.bulk.threshold_bytes = 1000;
  // Slices have 96 of 192 elements: 384 bytes.
  CHECK(iteration(scenario) == 50 * kUs + 2 * (kOverhead + 384 * kPsPerByte));
}

TEST_CASE("a batch of k launches costs one launch of their elements together") {
  // One node encodes and decodes k gradients. A launch takes a + b·elements.
  constexpr std::int64_t kGradients = 7, kElements = 320;
  Scenario scenario =
      test_scenario(test_model(std::vector<std::int64_t>(kGradients, kElements)), "ring", 1, 0, 1);
  const double b = 1e-9;  // 1 ns per element
  scenario.profile.codecs["byte"].encode.pieces = {{.a_s = 3e-6, .b_s = b}};
  scenario.profile.codecs["byte"].decode.pieces = {{.a_s = 2e-6, .b_s = b}};
  const std::int64_t elements_ps = kGradients * kElements * 1000;
  CHECK(iteration(scenario) == kGradients * (kEncode + kDecode) + 2 * elements_ps);
  scenario.plan.batch.threshold_bytes = 1 << 20;
  CHECK(iteration(scenario) == kEncode + kDecode + 2 * elements_ps);
  scenario.plan.batch.limit_bytes = 3 * 4 * kElements;  // batches of 3, 3 and 1
  CHECK(iteration(scenario) == 3 * (kEncode + kDecode) + 2 * elements_ps);
}

TEST_CASE("members of a batch end with their leader, and occupy nothing") {
  Scenario scenario = test_scenario(test_model({320, 320, 320}), "ps", 3, 0, 3);
  scenario.plan.batch.threshold_bytes = 1 << 20;
  const casync::TaskGraph graph = expand(scenario);
  const Result result = simulate(scenario, graph, Timelines::kRecorded);
  int members = 0;
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    if ((graph[id].flags & casync::kLeader) == 0) continue;
    for (const TaskId next : casync::successors(graph, id)) {
      if ((graph[next].flags & casync::kBatched) == 0) continue;
      if (graph[next].kind != graph[id].kind) continue;
      CHECK(result.timeline.start[next] == result.timeline.end[next]);
      CHECK(result.timeline.end[next] >= result.timeline.end[id]);
      ++members;
    }
  }
  CHECK(members > 0);
  const Utilisation use = utilisation(scenario, graph, result);
  for (const NodeUse& node : use.nodes) CHECK(node.codec <= 1);
}

TEST_CASE("an all-reduce takes what was measured, one after the other, together on all nodes") {
  models::Model model = test_model({1000, 500});
  model.gradients[0].ready_s = 1e-6;
  model.gradients[1].ready_s = 2e-6;
  for (const Network network : kNetworks) {
    Scenario scenario = with(test_scenario(model, "allreduce", 3, kRaw, 7), network);
    scenario.profile.all_reduce[3].pieces = {{.a_s = 20e-6, .b_s = 1e-9}};
    // Node 2 computes at half speed, so the first all-reduce starts at 2 · 1 us and takes 20 + 4
    // us; the second takes 20 + 2 us.
    scenario.cluster.compute_speed[2] = 0.5;
    const casync::TaskGraph graph = expand(scenario);
    const Result result = simulate(scenario, graph, Timelines::kRecorded);
    CHECK(result.iteration.count() == 2 * kUs + 24 * kUs + 22 * kUs);
    for (TaskId id = 0; id < graph.tasks(); ++id) {
      if (graph[id].kind != Kind::kAllReduce) continue;
      CHECK(result.timeline.start[id].count() == (graph[id].gradient == 0 ? 2 : 26) * kUs);
      CHECK(result.timeline.end[id].count() == (graph[id].gradient == 0 ? 26 : 48) * kUs);
    }
    // Each node sends 2(N-1)/N = 4/3 of 4000 and of 2000 bytes, rounded down.
    CHECK(result.bytes_sent == std::vector<std::int64_t>(3, 5333 + 2666));
    const Utilisation use = utilisation(scenario, graph, result);
    CHECK(use.nodes[1].egress.utilisation == Approx(46.0 / 48));
    CHECK(use.nodes[1].ingress.utilisation == Approx(46.0 / 48));
  }
}

TEST_CASE("messages wait for an all-reduce, which occupies both ports of every node") {
  // g0 is raw: its all-reduce runs from 0 to 100 us. g1 is compressed, with K = 1 and server 1: it
  // is encoded in that time. Then come message, decode-and-add, encode, message and decode.
  Scenario scenario = with(test_scenario(test_model({320, 320}), "ps", 2, 0, 1), Network::kPort);
  scenario.plan.decisions[0].algorithm = kRaw;
  scenario.plan.raw_topology = "allreduce";
  scenario.profile.all_reduce[2] = constant(100 * kUs);
  const std::int64_t s = kOverhead + 320 * kPsPerByte;
  CHECK(iteration(scenario) == 100 * kUs + 2 * s + kDecodeAdd + kEncode + kDecode);
}

TEST_CASE("an all-reduce that was not measured is an ideal ring") {
  Scenario scenario = test_scenario(test_model({32 * 4 * 100}), "allreduce", 4, kRaw, 1);
  scenario.cluster.link.latency_s = scenario.profile.link.latency_s = 7e-6;
  const std::int64_t step = kOverhead + 32 * 100 * 4 * kPsPerByte + 7 * kUs;
  CHECK(iteration(scenario) == 2 * 3 * step);
  const Scenario ring = [&] {
    Scenario other = scenario;
    other.plan.topology = "ring";
    other.plan.decisions[0].partitions = 4;
    return other;
  }();
  CHECK(iteration(ring) == iteration(scenario));
}

TEST_CASE("in half precision an all-reduce is the library's of half of the bytes, and two casts") {
  // E + 2(N-1)·(o + (S/2)/(N·B) + L) + D for each of two gradients in a row. An encode that divides
  // by N takes 1.5 times as long unless N is a power of two.
  for (const std::uint32_t nodes : {2u, 3u, 4u, 6u}) {
    for (const Network network : kNetworks) {
      CAPTURE(nodes, to_string(network));
      const std::int64_t elements = 32 * 100 * nodes;
      Scenario scenario =
          with(test_scenario(test_model({elements, elements}), "allreduce", nodes, 0, 1), network);
      scenario.plan.algorithms = {half_codec()};
      scenario.profile.codecs["byte"].encode_factor_quotients = 1.5;
      scenario.cluster.link.latency_s = scenario.profile.link.latency_s = 7e-6;
      const std::int64_t step = kOverhead + 32 * 100 * 2 * kPsPerByte + 7 * kUs;
      const std::int64_t encode = nodes == 3 || nodes == 6 ? kEncode * 3 / 2 : kEncode;
      const std::int64_t expected = 2 * (encode + 2 * (nodes - 1) * step + kDecode);
      CHECK(iteration(scenario) == expected);
      const ExpandedGraph folded = expand(scenario, Fold::kExactly);
      CHECK(simulate(scenario, folded.graph).iteration.count() == expected);
      // Each node sends 2(N-1)/N of two gradients with 2 bytes per element.
      const std::int64_t bytes = 2 * 2 * (nodes - 1) * (2 * elements) / nodes;
      CHECK(simulate(scenario, expand(scenario)).bytes_sent ==
            std::vector<std::int64_t>(nodes, bytes));
    }
  }
}

TEST_CASE("a measured all-reduce in half precision takes what was measured for so many bytes") {
  Scenario scenario = test_scenario(test_model({1000}), "allreduce", 3, 0, 1);
  scenario.plan.algorithms = {half_codec()};
  scenario.profile.all_reduce[3].pieces = {{.a_s = 20e-6, .b_s = 1e-9}};
  CHECK(iteration(scenario) == kEncode + 22 * kUs + kDecode);
}

TEST_CASE("compressed ps of three nodes and partitions without pipelining, by hand") {
  // As in closed_forms_test.cpp: encode E = 3, decode-and-add A = 4, decode D = 2, message s = 9 us
  // on every node. Without pipelining every step waits for the previous one: E E [0,6], s s [6,24],
  // A A [24,32], E [32,35], D of the node's own message [35,37], s s [37,55], D D [55,59].
  Scenario scenario = with(test_scenario(test_model({3 * 4000}), "ps", 3, 0, 3), Network::kPort);
  CHECK(iteration(scenario) == 48 * kUs);
  scenario.plan.pipelining = false;
  CHECK(iteration(scenario) == 59 * kUs);
}

TEST_CASE("without pipelining gradients come one after the other") {
  // Two raw rings of two nodes with K = 2. Without pipelining the second starts when the first has
  // ended: 2 messages per port each. With pipelining they share every port, which takes as long, as
  // raw rings keep the ports busy.
  Scenario scenario =
      with(test_scenario(test_model({640, 640}), "ring", 2, kRaw, 2), Network::kPort);
  const std::int64_t s = kOverhead + 4 * 320 * kPsPerByte;
  CHECK(iteration(scenario) == 4 * s);
  scenario.plan.pipelining = false;
  CHECK(iteration(scenario) == 4 * s);
  scenario.cluster.link.latency_s = 3e-6;  // pipelining hides it
  CHECK(iteration(scenario) == 4 * (s + 3 * kUs));
  scenario.plan.pipelining = true;
  CHECK(iteration(scenario) == 4 * s + 3 * kUs);  // the last message's latency remains
}

/// Two large gradients and many small ones, as in real models.
Scenario typical(const std::string& topology) {
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < 40; ++i) sizes.push_back(i % 20 == 7 ? 64000 : 320);
  models::Model model = test_model(sizes);
  for (std::size_t g = 0; g < sizes.size(); ++g) {
    model.gradients[g].ready_s = 0.1e-6 * static_cast<double>(g);
  }
  Scenario scenario = test_scenario(model, topology, 4, 0, 4);
  const costs::Curve slow = constant(30 * kUs);  // codecs spend their time on launches
  scenario.profile.codecs["byte"] = {slow, slow, slow};
  scenario.plan.bulk = {.threshold_bytes = 4096, .wait = casync::Picoseconds(100 * kUs)};
  scenario.plan.batch = {.threshold_bytes = 4096, .wait = casync::Picoseconds(100 * kUs)};
  return scenario;
}

TEST_CASE("pipelining and bulk each make a typical model faster") {
  for (const std::string topology : {"ps", "ring"}) {
    for (const Network network : kNetworks) {
      INFO(topology << " " << to_string(network));
      const Scenario full = with(typical(topology), network);
      Scenario no_bulk = full;
      no_bulk.plan.bulk = {};
      Scenario neither = no_bulk;
      neither.plan.batch = {};
      Scenario nothing = neither;
      nothing.plan.pipelining = false;
      CHECK(iteration(full) < iteration(no_bulk));
      CHECK(iteration(no_bulk) < iteration(neither));
      CHECK(iteration(neither) < iteration(nothing));
    }
  }
}

Scenario back_to_back(Scenario scenario) {
  scenario.iterations = 8;
  return scenario;
}

SteadyState settle(const Scenario& scenario) {
  const casync::TaskGraph graph = expand(scenario);
  const Result result = simulate(scenario, graph, Timelines::kRecorded);
  return steady_state(graph, result.timeline, scenario.iterations);
}

TEST_CASE("back to back, iterations that send nothing follow at once") {
  models::Model model = test_model({64, 64});
  model.forward_s = 3e-6;
  model.gradients[0].ready_s = 2e-6;
  model.gradients[1].ready_s = 7e-6;
  const SteadyState state = settle(back_to_back(test_scenario(model, "ring", 1, kRaw, 1)));
  CHECK(state.period.count() == 10 * kUs);
  CHECK(state.settled);
  CHECK(state.periods.size() == 7);
}

TEST_CASE("back to back, one gradient leaves nothing to overlap") {
  models::Model model = test_model({640});
  model.forward_s = 3e-6;
  model.gradients[0].ready_s = 2e-6;
  const Scenario scenario = test_scenario(model, "ring", 2, kRaw, 2);
  CHECK(settle(back_to_back(scenario)).period.count() == iteration(scenario));
}

TEST_CASE("back to back, forward of early layers hides the synchronisation of late ones") {
  // Forward and backward take 1 us for each of two gradients. g0, ready first, is compressed: its
  // synchronisation (encode 3, message 5.32, decode-and-add 4, encode 3, message 5.32, decode 2)
  // starts after 1 us of backward and takes 22.64 us. g1 is raw and arrives earlier. With a barrier
  // an iteration takes 2 + 1 + 22.64 us. Back to back, g0's synchronisation overlaps with g1's
  // forward, and the period is g0's: synchronisation, forward and backward.
  models::Model model = test_model({320, 32});
  model.forward_s = 2e-6;
  model.gradients[0].ready_s = 1e-6;
  model.gradients[1].ready_s = 2e-6;
  Scenario scenario = with(test_scenario(model, "ring", 2, 0, 1), Network::kPort);
  scenario.plan.decisions[1].algorithm = kRaw;
  const std::int64_t synchronisation = 22'640'000;
  CHECK(iteration(scenario) == 3 * kUs + synchronisation);
  const SteadyState state = settle(back_to_back(scenario));
  CHECK(state.period.count() == 2 * kUs + synchronisation);
  CHECK(state.settled);
}

TEST_CASE("computation counts as it was simulated, once and back to back, at any speed") {
  models::Model model = test_model({640});
  model.forward_s = 3e-6;
  model.gradients[0].ready_s = 2e-6;
  Scenario scenario = test_scenario(model, "ring", 2, kRaw, 2);
  const std::int64_t synchronisation = 2 * (kOverhead + 4 * 320 * kPsPerByte);
  for (const double speed : {0.5, 1.0, 2.0}) {
    CAPTURE(speed);
    scenario.cluster.compute_speed.assign(2, speed);
    const Result once = simulate(scenario, expand(scenario));
    CHECK(static_cast<double>(once.forward.count()) == 3 * kUs / speed);
    CHECK(static_cast<double>(once.compute.count()) == 5 * kUs / speed);
    CHECK(once.iteration.count() == once.compute.count() + synchronisation);
    // Nothing overlaps, so the period is the same.
    const SteadyState state = settle(back_to_back(scenario));
    CHECK(state.period == once.iteration);
    CHECK(state.forward == once.forward);
    CHECK(state.compute == once.compute);
  }
  // Backward starts on the fast node, and ends on the slow one.
  scenario.cluster.compute_speed = {1, 0.5};
  const Result once = simulate(scenario, expand(scenario));
  CHECK(once.forward.count() == 3 * kUs);
  CHECK(once.compute.count() == 10 * kUs);
  const SteadyState state = settle(back_to_back(scenario));
  CHECK(state.forward.count() == 3 * kUs);
  CHECK(state.compute.count() == 10 * kUs);
}

TEST_CASE("of several micro-steps, the last one's gradients are synchronised") {
  // Optimizer 4 us, then three times forward 3 us and backward 2 us, then the synchronisation.
  models::Model model = test_model({640});
  model.forward_s = 3e-6;
  model.optimizer_s = 4e-6;
  model.micro_steps = 3;
  model.gradients[0].ready_s = 2e-6;
  const Scenario scenario = test_scenario(model, "ring", 2, kRaw, 2);
  const std::int64_t synchronisation = 2 * (kOverhead + 4 * 320 * kPsPerByte);
  const Result once = simulate(scenario, expand(scenario));
  CHECK(once.forward.count() == (4 + 3 * 3 + 2 * 2) * kUs);
  CHECK(once.compute.count() == (4 + 3 * 3 + 3 * 2) * kUs);
  CHECK(once.iteration.count() == once.compute.count() + synchronisation);
  const SteadyState state = settle(back_to_back(scenario));  // without overlap
  CHECK(state.period == once.iteration);
  CHECK(state.forward == once.forward);
}

TEST_CASE("back to back, only the first forward pass of a step waits for gradients") {
  // g0 and g1 are as in the test of early and late layers. Only g1's part of the first forward
  // pass, 1 us, overlaps with g0's synchronisation of 22.64 us. Then come g0's part, 1 us, the
  // first backward and the second forward, 2 + 2 us, and 1 us of backward until g0 is ready.
  models::Model model = test_model({320, 32});
  model.forward_s = 2e-6;
  model.micro_steps = 2;
  model.gradients[0].ready_s = 1e-6;
  model.gradients[1].ready_s = 2e-6;
  Scenario scenario = with(test_scenario(model, "ring", 2, 0, 1), Network::kPort);
  scenario.plan.decisions[1].algorithm = kRaw;
  const std::int64_t synchronisation = 22'640'000;
  CHECK(iteration(scenario) == (2 + 2 + 2 + 1) * kUs + synchronisation);
  const SteadyState state = settle(back_to_back(scenario));
  CHECK(state.period.count() == (1 + 2 + 2 + 1) * kUs + synchronisation);
  CHECK(state.settled);
}

TEST_CASE("back to back, computation is never longer than the period") {
  models::Model model = test_model({640, 6400});
  model.forward_s = 3e-6;
  model.gradients[0].ready_s = 2e-6;
  model.gradients[1].ready_s = 40e-6;
  Scenario scenario = back_to_back(test_scenario(model, "ring", 3, kRaw, 3));
  scenario.jitter = std::make_shared<const Jitter>(Jitter::parse("uniform:0.9"));
  for (scenario.draws.seed = 0; scenario.draws.seed < 50; ++scenario.draws.seed) {
    const SteadyState state = settle(scenario);
    CHECK(state.compute <= state.period);
    CHECK(state.forward <= state.compute);
    CHECK(state.forward.count() > 0);
  }
}

TEST_CASE("a steady state needs two iterations and the graph's own timeline") {
  const Scenario scenario = test_scenario(test_model({640}), "ring", 2, kRaw, 2);
  const casync::TaskGraph graph = expand(scenario);
  const Result result = simulate(scenario, graph, Timelines::kRecorded);
  CHECK_THROWS_WITH(steady_state(graph, result.timeline, 1), Catch::Contains("at least 2"));
  CHECK_THROWS(steady_state(graph, {}, 2));
}

}  // namespace
}  // namespace hipress::sim
