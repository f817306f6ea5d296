#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "casync/graph_builder.hpp"
#include "costs/machine_options.hpp"
#include "tests/sim/fixtures.hpp"

namespace hipress::sim {
namespace {

using casync::kRaw;
using casync::TaskGraph;
using casync::TaskId;

/// A job on hosts of 8 H100, with a layer of half-precision parameters per number in `elements`.
/// Forward takes 1 s, backward 2 s.
Scenario on_h100(const std::vector<std::int64_t>& elements, std::uint32_t hosts,
                 const std::string& schedule) {
  const costs::LoadedMachines machines = costs::load({.machine = "hgx-h100", .hosts = hosts}, 0, 1);
  models::Model model = test_model(elements);
  model.forward_s = 1;
  for (std::size_t g = 0; g < model.gradients.size(); ++g) {
    model.gradients[g].dtype = models::Dtype::kFloat16;
    model.gradients[g].ready_s =
        2 * static_cast<double>(g + 1) / static_cast<double>(model.gradients.size());
  }
  Scenario scenario = test_scenario(model, "ring", 8 * hosts, kRaw, 1);
  scenario.plan.schedule = casync::Schedule::parse(schedule);
  scenario.plan.algorithms.clear();  // the profile has no costs of them
  scenario.profile = machines.profile;
  scenario.cluster = machines.cluster;
  return scenario;
}

/// Seconds of the longest task of that kind.
double longest_s(const Scenario& scenario, casync::Kind kind) {
  const TaskGraph graph = expand(scenario, casync::Folding::kFolded);
  const Result result = simulate(scenario, graph, Timelines::kRecorded);
  Picoseconds longest{0};
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    if (graph[id].kind != kind) continue;
    longest = std::max(longest, result.timeline.end[id] - result.timeline.start[id]);
  }
  return casync::to_seconds(longest);
}

double model_s(const Scenario& scenario, costs::Ranks ranks, costs::Operation operation,
               double bytes) {
  return costs::collective_time(*scenario.profile.machine, ranks, operation, bytes).seconds;
}

constexpr std::int64_t kLayer = 64 << 20;  // elements, of 128 MiB

TEST_CASE("collectives of shards take what the model says of their hosts and bytes") {
  const Scenario fsdp = on_h100({kLayer}, 8, "fsdp");
  CHECK(longest_s(fsdp, casync::Kind::kAllGather) ==
        Approx(model_s(fsdp, {8, 64}, costs::Operation::kAllGather, 2.0 * kLayer)));
  CHECK(longest_s(fsdp, casync::Kind::kReduceScatter) ==
        Approx(model_s(fsdp, {8, 64}, costs::Operation::kReduceScatter, 2.0 * kLayer)));
  // With hsdp, shards are gathered within each host, over NVLink.
  const Scenario hsdp = on_h100({kLayer}, 8, "hsdp(shard=8)");
  const double inside = model_s(hsdp, {1, 8}, costs::Operation::kAllGather, 2.0 * kLayer);
  // Between hosts, each GPU averages its eighth with one GPU of every other host.
  const double between = model_s(hsdp, {8, 8}, costs::Operation::kAllGather, 2.0 * kLayer / 8);
  CHECK(longest_s(hsdp, casync::Kind::kAllGather) == Approx(std::max(inside, between)));
}

TEST_CASE("FSDP of 8 billion parameters on 8 hosts of 8 H100 is all but hidden") {
  // Llama-3.1 8B: 32 layers of 218 million parameters, embedding and head of 525 million each. One
  // host takes 3 s for a step with 2 sequences of 8192 tokens per GPU. For 16 hosts, 97.7 % of one
  // host's speed were published (TorchTitan, arXiv 2410.06511).
  std::vector<std::int64_t> elements(34, 218'112'000);
  elements.front() = elements.back() = 525'336'576;
  for (const std::uint32_t hosts : {8U, 16U}) {
    const Scenario scenario = on_h100(elements, hosts, "fsdp");
    const TaskGraph graph = expand(scenario, casync::Folding::kFolded);
    const double step_s = casync::to_seconds(simulate(scenario, graph).iteration);
    CHECK(step_s >= 3);
    CHECK((step_s - 3) / step_s <= 0.02);
  }
}

TEST_CASE("an all-reduce of a machine's GPUs is the library's over all of them") {
  Scenario ddp = on_h100({kLayer}, 2, "ddp");
  ddp.plan.topology = "allreduce";
  ddp.model.gradients[0].dtype = models::Dtype::kFloat32;
  CHECK(longest_s(ddp, casync::Kind::kAllReduce) ==
        Approx(model_s(ddp, {2, 16}, costs::Operation::kAllReduce, 4.0 * kLayer)));
}

/// Graph with each of the `tasks` on every node.
TaskGraph on_all(std::uint32_t nodes, const std::vector<casync::Task>& tasks) {
  casync::GraphBuilder builder(nodes);
  for (casync::Task task : tasks) {
    for (task.node = 0; task.node < nodes; ++task.node) builder.add(task);
  }
  return std::move(builder).build();
}

TEST_CASE("collectives of several groups share NVLink and cards by their bytes") {
  const Scenario scenario = on_h100({kLayer}, 8, "fsdp");
  const casync::Task gather = {.amount = 2 * kLayer, .kind = casync::Kind::kAllGather};
  const auto together_s = [&](std::vector<casync::Task> tasks) {
    TaskGraph graph = on_all(64, tasks);
    graph.groups = {{64, 1}, {64, 1}, {8, 1}, {8, 1}};
    return casync::to_seconds(simulate(scenario, graph).iteration);
  };
  casync::Task other = gather, inside = gather;
  other.group = 1;
  inside.group = 2;
  // The 7 steps to the next host each wait for 2.5 us, in which the link is idle.
  const costs::CollectiveWay way = costs::collective_time(
      *scenario.profile.machine, {8, 64}, costs::Operation::kAllGather, 2.0 * kLayer);
  const double waits_s = 7 * 2.5e-6, on_link_s = way.seconds - waits_s;
  REQUIRE(2 * way.between > 1);
  CHECK(together_s({gather}) == Approx(way.seconds));
  // Two gathers share the cards.
  CHECK(together_s({gather, other}) == Approx(2 * way.between * on_link_s + waits_s));
  // A gather within a host uses only NVLink.
  const costs::CollectiveWay within = costs::collective_time(
      *scenario.profile.machine, {1, 8}, costs::Operation::kAllGather, 2.0 * kLayer);
  CHECK(within.between == 0);
  // Two gathers within a host share NVLink. One over all hosts needs less than half of it.
  REQUIRE(2 * within.within > 1);
  REQUIRE(way.within < 0.5);
  casync::Task another = inside;
  another.group = 3;
  CHECK(together_s({inside, another}) == Approx(2 * within.within * within.seconds));
  CHECK(together_s({gather, inside}) == Approx(way.seconds));
}

TEST_CASE("an all-reduce and a message share a card") {
  Scenario scenario = on_h100({kLayer}, 2, "ddp");
  scenario.plan.topology = "allreduce";
  const casync::Task reduce = {
      .amount = 4 * kLayer, .peer_offset = 1, .kind = casync::Kind::kAllReduce};
  const costs::CollectiveWay way = costs::collective_time(
      *scenario.profile.machine, {2, 16}, costs::Operation::kAllReduce, 4.0 * kLayer);
  REQUIRE(way.between > way.within);
  const std::int64_t bytes = 1 << 20;
  const auto message_s = [&](const std::vector<casync::Task>& beside) {
    casync::GraphBuilder builder(16);
    const TaskId send =
        builder.add({.amount = bytes, .node = 7, .peer_offset = 1, .kind = casync::Kind::kSend});
    for (casync::Task task : beside) {
      for (task.node = 0; task.node < 16; ++task.node) builder.add(task);
    }
    const TaskGraph graph = std::move(builder).build();
    return casync::to_seconds(simulate(scenario, graph, Timelines::kRecorded).timeline.end[send]);
  };
  // The message has the card of GPU 7, 400 Gbit/s at 96 %; beside the all-reduce, half of it.
  const double alone_s = 5e-6 + bytes / (50e9 * 0.96);
  CHECK(message_s({}) == Approx(alone_s));
  CHECK(message_s({reduce}) == Approx(2 * alone_s));
}

TEST_CASE("rings over the rails of 8 hosts use all cards alike, and NVLink within hosts") {
  Scenario scenario = on_h100({kLayer}, 8, "ddp");
  scenario.plan.decisions[0].partitions = 256;
  const auto between_hosts = [&](std::uint32_t rails) {
    scenario.plan.rails = rails;
    const TaskGraph graph = expand(scenario);
    std::vector<std::int64_t> of_card(64);
    for (TaskId id = 0; id < graph.tasks(); ++id) {
      const casync::Task& task = graph[id];
      if (task.kind != casync::Kind::kSend) continue;
      const costs::Path path = costs::path(scenario.cluster, task.node, graph.peer(task));
      if (path == costs::Path::kBetweenHosts) of_card[task.node] += task.amount;
    }
    return of_card;
  };
  // Slices go around the ring twice, less one hop each, so a card carries nearly 2 · 256/8
  // messages.
  const std::vector<std::int64_t> one = between_hosts(1), all = between_hosts(8);
  CHECK(std::ranges::count(one, 0) == 56);
  const std::int64_t bytes = 4 * kLayer;
  CHECK(std::ranges::max(one) <= 2 * bytes);
  CHECK(std::ranges::min(all) >= 2 * bytes / 8 * 7 / 8);
  CHECK(std::ranges::max(all) <= 2 * bytes / 8);

  const TaskGraph graph = expand(scenario);
  const Result result = simulate(scenario, graph, Timelines::kRecorded);
  scenario.plan.rails = 1;
  const double one_s = casync::to_seconds(simulate(scenario, expand(scenario)).iteration) - 3;
  // With one ring, a card sends 512 messages of 1 MiB. With eight rings it sends 64, and the limit
  // is a GPU's NVLink port with hops of the other 7 rings: 448 messages and their overheads.
  const double step_s = casync::to_seconds(result.iteration) - 3;
  const double card_s = 512 * (5e-6 + (1 << 20) / (50e9 * 0.96));
  const double nvlink_s = 448 * (5e-6 + (1 << 20) / (0.844 * 450e9));
  CHECK(one_s > 0.98 * card_s);
  CHECK(one_s < 1.05 * card_s);
  CHECK(step_s > 0.98 * nvlink_s);
  CHECK(step_s < 1.05 * nvlink_s);
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    if (graph[id].kind != casync::Kind::kSend) continue;
    const TaskId recv = casync::successors(graph, id).front();
    const bool inside = costs::path(scenario.cluster, graph[id].node, graph.peer(graph[id])) ==
                        costs::Path::kWithinHost;
    const auto wait = result.timeline.end[recv] - result.timeline.end[id];
    if (wait.count() != (inside ? 0 : 2'500'000)) FAIL("send " << id << " waits " << wait.count());
  }
}

}  // namespace
}  // namespace hipress::sim
