#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <random>
#include <string>

#include "io/error.hpp"
#include "sim/folding.hpp"
#include "sim/utilisation.hpp"
#include "tests/sim/fixtures.hpp"
#include "tests/sim/reference.hpp"

namespace hipress::sim {
namespace {

using casync::kRaw;
using casync::TaskGraph;
using Catch::Matchers::Contains;

/// A job of equal layers, whose forward and backward take whole microseconds.
struct Uniform {
  std::int64_t layers = 6;
  std::int64_t elements = 4 * 32 * 1000;
  std::int64_t forward_us = 100, backward_us = 200;
  std::uint32_t nodes = 4;

  std::int64_t bytes() const { return 4 * elements; }
  /// Time of a gather or a reduction: (W-1)·o + (W-1)/W·S/B.
  std::int64_t collective() const {
    return (nodes - 1) * kOverhead + (nodes - 1) * (bytes() / nodes) * kPsPerByte;
  }
  models::Model model() const {
    models::Model model = test_model(std::vector<std::int64_t>(layers, elements));
    model.forward_s = 1e-6 * static_cast<double>(layers * forward_us);
    for (std::int64_t g = 0; g < layers; ++g) {
      model.gradients[g].ready_s = 1e-6 * static_cast<double>((g + 1) * backward_us);
    }
    return model;
  }
  Scenario scenario(const std::string& schedule) const {
    Scenario made = test_scenario(model(), "ring", nodes, kRaw, 1);
    made.plan.schedule = casync::Schedule::parse(schedule);
    return made;
  }
};

std::int64_t time_of(const Scenario& scenario) {
  const TaskGraph graph = expand(scenario, casync::Folding::kFolded);
  const std::int64_t folded = simulate(scenario, graph).iteration.count();
  const TaskGraph whole = expand(scenario, casync::Folding::kNone);
  casync::check(whole);
  CHECK(casync::whole_tasks(graph) == whole.tasks());
  CHECK(simulate(scenario, whole).iteration.count() == folded);
  return folded;
}

TEST_CASE("uniform layers in shards take the times of the closed forms") {
  for (const Network network : {Network::kPort, Network::kFair}) {
    for (const char* communicators : {"shared", "separate"}) {
      CAPTURE(to_string(network), communicators);
      const auto schedule = [&](const std::string& more) {
        return "fsdp(communicators=" + std::string(communicators) + more + ")";
      };
      const auto time = [&](const Uniform& job, const std::string& more) {
        Scenario scenario = job.scenario(schedule(more));
        scenario.network = network;
        return time_of(scenario);
      };
      Uniform fast;  // bound by computation: a layer's pass is longer than its two collectives
      fast.elements = 32 * fast.nodes;
      const std::int64_t g = fast.collective(), passes = fast.layers * 300 * kUs;
      REQUIRE(2 * g < fast.forward_us * kUs);
      // The first gather and the last reduction are exposed.
      CHECK(time(fast, "") == g + passes + g);
      CHECK(time(fast, ", reshard=false") == g + passes + g);
      // In backward, each layer also waits for its own gather. With prefetch=none, the gather of
      // each but the first follows the reduction of the layer before it on the communicator.
      CHECK(time(fast, ", prefetch=post") == g + passes + (fast.layers) * g + g);
      CHECK(time(fast, ", prefetch=none") == g + passes + g + 2 * (fast.layers - 1) * g + g);

      Uniform slow;  // bound by the network: three collectives per layer, back to back
      slow.elements = 32 * 100'000 * slow.nodes;
      const std::int64_t s = slow.collective();
      REQUIRE(s > 2 * slow.backward_us * kUs);
      CHECK(time(slow, "") == 3 * slow.layers * s);
      // Without a second gather, a step is all gathers, the last layer's forward and backward, and
      // all reductions.
      CHECK(time(slow, ", reshard=false") ==
            2 * slow.layers * s + (slow.forward_us + slow.backward_us) * kUs);
    }
  }
}

TEST_CASE("uniform layers whose shards are messages take the times of the closed forms") {
  Uniform job;
  job.elements = 32 * job.nodes;
  const std::int64_t passes = job.layers * 300 * kUs;
  // A collective takes W-1 messages to one port, or W-1 hops, of a shard each; merges are free.
  const std::int64_t operation = job.collective();
  for (const char* shards_by : {"ring", "direct"}) {
    for (const Network network : {Network::kPort, Network::kFair}) {
      CAPTURE(shards_by, to_string(network));
      Scenario scenario = job.scenario("fsdp");
      scenario.plan.shards_by = shards_by;
      scenario.network = network;
      scenario.profile.merge = {};
      const TaskGraph graph = expand(scenario, casync::Folding::kNone);
      casync::check(graph);
      CHECK(casync::whole_tasks(graph) == graph.tasks());
      CHECK(simulate(scenario, graph).iteration.count() == operation + passes + operation);
    }
  }
}

/// A random job on 2 to 8 nodes, whose layers differ in size and time.
Scenario random_job(std::mt19937& draw) {
  const auto between = [&](int least, int most) {
    return std::uniform_int_distribution(least, most)(draw);
  };
  const int layers = between(1, 12);
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < layers; ++i) sizes.push_back(between(1, 300'000));
  models::Model model = test_model(sizes);
  model.forward_s = between(0, 3000) * 1e-6;
  model.optimizer_s = between(0, 100) * 1e-6;
  double ready_s = 0;
  for (models::Gradient& gradient : model.gradients) {
    ready_s += between(0, 500) * 1e-6;
    gradient.ready_s = ready_s;
  }
  const auto nodes = static_cast<std::uint32_t>(between(2, 8));
  Scenario scenario = test_scenario(std::move(model), "ring", nodes, kRaw, 1);
  scenario.cluster.link.latency_s = between(0, 50) * 1e-6;
  return scenario;
}

TEST_CASE("random sharded jobs: every task's times are those of the reference simulator") {
  std::mt19937 draw(11);
  const auto one_of = [&](std::initializer_list<const char*> texts) {
    return std::string(texts.begin()[draw() % texts.size()]);
  };
  for (int i = 0; i < 120; ++i) {
    Scenario scenario = random_job(draw);
    const std::uint32_t nodes = scenario.plan.nodes;
    // The reference simulator is slow for graphs with many messages.
    const bool is_small = nodes <= 4 && scenario.model.gradients.size() <= 6;
    scenario.plan.shards_by = is_small ? one_of({"library", "ring", "direct"}) : "library";
    const bool in_groups = nodes % 2 == 0 && !scenario.plan.shards_in_messages();
    const std::string name = in_groups ? one_of({"fsdp(", "hsdp(shard=2, "}) : "fsdp(";
    scenario.plan.schedule = casync::Schedule::parse(
        name + "reshard=" + one_of({"true", "false"}) +
        ", prefetch=" + one_of({"pre", "post", "none"}) + ", in_flight=" + one_of({"1", "2", "3"}) +
        ", communicators=" + one_of({"shared", "separate"}) + ")");
    scenario.plan.decisions.assign(scenario.plan.decisions.size(),
                                   {static_cast<std::int8_t>(draw() % 2 == 0 ? kRaw : 0)});
    scenario.plan.gathers.assign(scenario.plan.decisions.size(),
                                 static_cast<std::int8_t>(draw() % 2 == 0 ? kRaw : 0));
    if (draw() % 2 == 0) scenario.cluster.compute_speed[0] = 0.5;
    scenario.network = draw() % 2 == 0 ? Network::kPort : Network::kFair;
    const TaskGraph graph = expand(scenario, casync::Folding::kNone);
    casync::check(graph);
    const TaskCosts costs(scenario.profile, scenario.plan.algorithms);
    const Options options{.network = scenario.network, .record_timeline = true};
    const traces::Timeline slow = simulate_slowly(graph, costs, scenario.cluster, options);
    const Result fast = simulate(graph, costs, scenario.cluster, options);
    CAPTURE(i, scenario.plan.schedule.text());
    for (casync::TaskId id = 0; id < graph.tasks(); ++id) {
      CAPTURE(casync::describe(graph, id));
      REQUIRE(fast.timeline.start[id] == slow.start[id]);
      REQUIRE(fast.timeline.end[id] == slow.end[id]);
    }
  }
}

TEST_CASE("separate communicators are never slower than one") {
  std::mt19937 draw(7);  // the same on every machine
  int faster = 0;
  for (int i = 0; i < 200; ++i) {
    Scenario scenario = random_job(draw);
    for (const char* prefetch : {"pre", "post", "none"}) {
      for (const Network network : {Network::kPort, Network::kFair}) {
        CAPTURE(i, prefetch, to_string(network));
        scenario.network = network;
        const auto time = [&](const std::string& communicators) {
          scenario.plan.schedule = casync::Schedule::parse(
              "fsdp(prefetch=" + std::string(prefetch) + ", communicators=" + communicators + ")");
          return time_of(scenario);
        };
        const std::int64_t shared = time("shared"), separate = time("separate");
        CHECK(separate <= shared);
        faster += separate < shared ? 1 : 0;
      }
    }
  }
  CHECK(faster > 0);
}

/// Bytes that a node sends in a step, and bytes that a host sends to other hosts.
std::int64_t sent(const Scenario& scenario) {
  const TaskGraph graph = expand(scenario, casync::Folding::kFolded);
  return simulate(scenario, graph).bytes_sent.front();
}
std::int64_t sent_between_hosts(const Scenario& scenario, std::uint32_t nodes_per_host) {
  const TaskGraph graph = expand(scenario, casync::Folding::kFolded);
  std::int64_t bytes = 0;
  for (casync::TaskId id = 0; id < graph.tasks(); ++id) {
    if (!casync::is_of_group(graph[id])) continue;
    const auto [nodes, stride] = graph.groups[graph[id].group];
    if (nodes * stride <= nodes_per_host) continue;
    // A ring of stride 1 leaves a host once; with larger strides, each of a host's rings does.
    bytes += casync::bytes_sent(graph, graph[id]) * std::min(stride, nodes_per_host);
  }
  return bytes;
}

/// The scenario on hosts of `nodes_per_host` nodes, whose host_link is ten times as fast.
Scenario on_hosts(Scenario scenario, std::uint32_t nodes_per_host) {
  scenario.cluster.host_link = scenario.cluster.link;
  scenario.cluster.host_link->bandwidth = 10 * kBandwidth;
  scenario.cluster.host_link->bandwidth_both_ways = 10 * kBandwidth;
  for (std::uint32_t node = 0; node < scenario.cluster.nodes; ++node) {
    scenario.cluster.host[node] = node / nodes_per_host;
  }
  return scenario;
}

TEST_CASE("sharded schedules send what the published formulas say") {
  Uniform job;
  job.nodes = 16;
  job.elements = 32 * 16 * 16;
  const std::int64_t all = job.layers * job.bytes(), world = job.nodes;
  CHECK(sent(job.scenario("fsdp")) == 3 * (all / world) * (world - 1));
  CHECK(sent(job.scenario("fsdp(reshard=false)")) == 2 * (all / world) * (world - 1));
  // With G = 8 GPUs per host, each sends 3M(G-1)/G within it, and 2M/G·(R-1)/R between R hosts.
  const std::int64_t gpus = 8, hosts = 2;
  const Scenario hsdp = on_hosts(job.scenario("hsdp(shard=8)"), 8);
  CHECK(sent(hsdp) == 3 * (all / gpus) * (gpus - 1) + 2 * (all / gpus / hosts) * (hosts - 1));
  CHECK(sent_between_hosts(hsdp, 8) == 2 * (all / hosts) * (hosts - 1));
  // If a host's GPUs keep all shards after forward, backward gathers them within the host.
  const Scenario kept = on_hosts(job.scenario("fsdp(reshard=8)"), 8);
  CHECK(sent(kept) == 2 * (all / world) * (world - 1) + (all / gpus) * (gpus - 1));
  CHECK(sent_between_hosts(kept, 8) == 2 * (all / world) * (world - 1));
}

TEST_CASE("ZeRO++ sends a quarter of what ZeRO-3 does between hosts") {
  // On 24 hosts of 16 GPUs, as published: gathers send half of the bytes, one byte per value
  // instead of two; reductions send a quarter, half a byte per value, and only once per host.
  Uniform job;
  job.nodes = 384;
  job.elements = 384 * 32;
  Scenario scenario = on_hosts(job.scenario("fsdp(reshard=16)"), 16);
  for (models::Gradient& gradient : scenario.model.gradients) {
    gradient.dtype = models::Dtype::kFloat16;
  }
  scenario.plan.algorithms = {byte_codec(), byte_codec()};
  scenario.plan.algorithms[1].name = "nibble";
  scenario.plan.algorithms[1].encoded_bytes = [](std::int64_t n) { return n / 2; };
  scenario.profile.codecs["nibble"] = scenario.profile.codecs["byte"];
  scenario.plan.gathers.assign(job.layers, 0);
  for (casync::Decision& decision : scenario.plan.decisions) decision.algorithm = 1;
  scenario.plan.exchange_within = 16;
  const std::int64_t all = job.layers * job.elements * 2;
  const std::int64_t gathers = all / 2 / 384 * 383, reductions = all / 4 / 24 * 23;
  CHECK(sent_between_hosts(scenario, 16) == gathers + reductions);
  CHECK(static_cast<double>(gathers + reductions) / static_cast<double>(all) ==
        Approx(0.75).epsilon(0.02));
  scenario.plan.gathers.clear();
  scenario.plan.exchange_within = 1;
  scenario.plan.algorithms[0].half_precision = true;
  scenario.plan.algorithms[0].encoded_bytes = [](std::int64_t n) { return 2 * n; };
  for (casync::Decision& decision : scenario.plan.decisions) decision.algorithm = 0;
  scenario.plan.schedule = casync::Schedule::parse("fsdp");
  CHECK(sent_between_hosts(scenario, 16) == 3 * all / 384 * 383);
  const TaskGraph graph = expand(scenario, casync::Folding::kFolded);
  CHECK(graph.tasks() == 1 + 5 * job.layers);  // the optimizer; per layer two passes, three
                                               // collectives
}

TEST_CASE("an exchange passes a host's link as often as its nodes send out") {
  // 2 hosts of 4 nodes, each of which sends 4 of its 7 messages to the other host: 16 messages at 1
  // ns per byte on the host's link, and o for each of a node's 7.
  const Uniform job{.layers = 1, .elements = 8 * 32, .nodes = 8};
  Scenario scenario = on_hosts(job.scenario("fsdp(reshard=false)"), 4);
  for (casync::Decision& decision : scenario.plan.decisions) decision.algorithm = 0;
  const TaskGraph graph = expand(scenario, casync::Folding::kFolded);
  const Result result = simulate(scenario, graph, Timelines::kRecorded);
  const auto time_of_exchange = [&](std::size_t place) {
    for (casync::TaskId id = 0; id < graph.tasks(); ++id) {
      if (graph[id].kind != casync::Kind::kAllToAll || place-- > 0) continue;
      return (result.timeline.end[id] - result.timeline.start[id]).count();
    }
    return std::int64_t{0};
  };
  CHECK(time_of_exchange(0) == 7 * kOverhead + 16 * 32 * kPsPerByte);
  // The host's link carries the exchange's 16 messages, and the gather's ring.
  const Utilisation use = utilisation(scenario, graph, result);
  CHECK(use.host_links[0].out.bytes ==
        16 * 32 + 7 * 4 * (job.elements / 8));  // the second term is the ring
  CHECK(time_of(scenario) > 0);
}

TEST_CASE("an exchange in two steps, and shards among fewer, are none where all are one group") {
  const Uniform job{.layers = 3, .elements = 8 * 32, .nodes = 8};
  Scenario scenario = job.scenario("fsdp");
  for (casync::Decision& decision : scenario.plan.decisions) decision.algorithm = 0;
  scenario.plan.gathers.assign(3, 0);
  const std::int64_t once = time_of(scenario);
  scenario.plan.exchange_within = 8;
  CHECK(time_of(scenario) == once);
  scenario.plan.schedule = casync::Schedule::parse("fsdp(reshard=8)");
  CHECK(time_of(scenario) == once);
  scenario.plan.exchange_within = 2;
  CHECK(time_of(scenario) != once);
}

TEST_CASE("parameters in half precision are sent as they are, beside others of their layer") {
  const Uniform job{.layers = 1, .elements = 4 * 32, .nodes = 4};
  Scenario scenario = job.scenario("fsdp");
  scenario.model.gradients[0].name = "block.0.weight";
  scenario.model.gradients[0].dtype = models::Dtype::kFloat16;
  scenario.model.gradients.push_back(
      {.name = "block.0.norm", .elements = 32, .ready_s = scenario.model.gradients[0].ready_s});
  scenario.plan.algorithms = {half_codec()};
  scenario.plan.decisions = {{0, 1}, {kRaw, 1}};
  CHECK(sent(scenario) == 3 * (2 * 4 * 32 + 4 * 32) / 4 * 3);
  const TaskGraph graph = expand(scenario, casync::Folding::kFolded);
  CHECK(graph.tasks() == 1 + 2 + 3);  // optimizer, passes, collectives; no codecs
}

TEST_CASE("what stays whole in a micro-step is gathered behind its backward passes") {
  Uniform job{.layers = 6, .nodes = 4};
  for (const char* communicators : {"shared", "separate"}) {
    Scenario scenario =
        job.scenario("fsdp(reshard=false, communicators=" + std::string(communicators) + ")");
    scenario.model.micro_steps = 2;
    const TaskGraph graph = expand(scenario, casync::Folding::kFolded);
    const Result result = simulate(scenario, graph, Timelines::kRecorded);
    std::vector<Picoseconds> gathers, passes;
    for (casync::TaskId id = 0; id < graph.tasks(); ++id) {
      if (graph[id].kind == casync::Kind::kAllGather) {
        gathers.push_back(result.timeline.start[id]);
      }
      if (graph[id].kind == casync::Kind::kBackward) passes.push_back(result.timeline.end[id]);
    }
    REQUIRE(gathers.size() == 12);
    REQUIRE(passes.size() == 12);
    CHECK(gathers[6] >= passes[5]);
  }
}

TEST_CASE("layers, micro-steps and the optimizer follow one another in a sharded step") {
  Uniform job;
  job.layers = 1;
  Scenario scenario = job.scenario("fsdp");
  const std::int64_t c = job.collective(), f = job.forward_us * kUs, b = job.backward_us * kUs;
  // The gather for backward overlaps with forward, into a second buffer.
  REQUIRE(c > f);
  const std::int64_t step = c + c + b + c;
  CHECK(time_of(scenario) == step);
  scenario.model.optimizer_s = 50e-6;
  CHECK(time_of(scenario) == 50 * kUs + step);
  scenario.iterations = 3;
  CHECK(time_of(scenario) == 3 * (50 * kUs + step));
  scenario.iterations = 1;
  scenario.model.micro_steps = 2;
  // The second micro-step's gather comes after the first reduction, on the same communicator.
  CHECK(time_of(scenario) == 50 * kUs + 2 * step);
}

TEST_CASE("a sharded schedule that cannot be is refused") {
  const auto refusal = [](const std::function<void(Scenario&)>& change, const char* schedule) {
    try {
      Scenario scenario = Uniform{.nodes = 6}.scenario(schedule);
      change(scenario);
      const TaskGraph graph = expand(scenario, casync::Folding::kNone);
      simulate(scenario, graph);
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto nothing = [](Scenario&) {};
  CHECK(refusal(nothing, "fsdp").empty());
  CHECK_THAT(refusal(nothing, "hsdp(shard=4)"), Contains("shard=4 does not divide 6 nodes"));
  CHECK_THAT(refusal(nothing, "fsdp(reshard=4)"), Contains("reshard=4 does not divide 6 nodes"));
  CHECK_THAT(refusal(nothing, "hsdp(shard=2, reshard=3)"), Contains("no more shards than that"));
  CHECK_THAT(refusal(
                 [](Scenario& one) {
                   one.cluster.racks = {costs::RackCosts{.hosts = 3, .oversubscription = 10}};
                 },
                 "hsdp(shard=2)"),
             Contains("in racks of 3 in different ways"));
  CHECK_THAT(refusal(nothing, "fsdp(reshard=1)"),
             Contains("true or false or a whole number from 2"));
  CHECK_THAT(refusal(nothing, "fsdp(prefetch=never)"), Contains("pre or post or none"));
  CHECK_THAT(refusal(nothing, "fsdp(in_flight=0)"), Contains("in_flight must be"));
  CHECK_THAT(refusal(
                 [](Scenario& one) {
                   one.model.gradients.clear();
                   one.plan.decisions.clear();
                 },
                 "fsdp"),
             Contains("the model has none"));
  CHECK_THAT(refusal([](Scenario& one) { one.plan.bulk.threshold_bytes = 1 << 20; }, "fsdp"),
             Contains("leave bulk groups out"));
  CHECK_THAT(refusal(
                 [](Scenario& one) {
                   one.plan.gpus_per_node = 2;
                   one.cluster.gpus_per_node = 2;
                   one.cluster.gpu_link = {1e-6, 1e9};
                 },
                 "fsdp"),
             Contains("plan for one GPU per node"));
  CHECK_THAT(refusal([](Scenario& one) { one = on_hosts(one, 4); }, "fsdp"),
             Contains("hosts have different numbers of nodes"));
  CHECK_THAT(refusal([](Scenario& one) { one = on_hosts(one, 3); }, "hsdp(shard=2)"),
             Contains("on hosts of 3 in different ways"));
}

}  // namespace
}  // namespace hipress::sim
