#include <catch2/catch.hpp>
#include <limits>
#include <map>
#include <sstream>

#include "casync/graph_builder.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "tests/sim/fixtures.hpp"

namespace hipress::sim {
namespace {

using casync::GraphBuilder;
using casync::Kind;
using casync::kRaw;
using casync::TaskId;
using Catch::Matchers::Contains;

/// Graph of gradients with odd sizes and odd ready times, half of them compressed.
casync::TaskGraph mixed_graph(const std::string& topology) {
  models::Model model = test_model({100003, 5, 4096, 77777, 32, 250000});
  model.forward_s = 123e-6;
  for (std::size_t g = 0; g < model.gradients.size(); ++g) {
    model.gradients[g].ready_s = 1e-6 * static_cast<double>(37 * g % 101);
  }
  casync::Plan plan{
      .topology = topology, .nodes = 5, .algorithms = {byte_codec()}, .decisions = {}};
  for (std::size_t g = 0; g < model.gradients.size(); ++g) {
    plan.decisions.push_back(
        {static_cast<std::int8_t>(g % 2 == 0 ? 0 : kRaw), static_cast<std::int32_t>(1 + g)});
  }
  return casync::expand(model, plan);
}

costs::Cluster busy_cluster() {
  costs::Cluster cluster = test_cluster(5);
  cluster.link.latency_s = 3e-6;
  cluster.link.bandwidth_both_ways = 0.7e9;
  cluster.link.core_s_per_byte = 1.3e-9;
  cluster.link.core_s_per_message = 4e-6;
  cluster.host = {0, 0, 1, 1, 1};
  cluster.cores_per_host = 2;
  cluster.compute_speed = {1, 1, 0.5, 1, 1.25};
  return cluster;
}

std::string trace_of(const std::string& topology, Network network, const costs::Cluster& cluster) {
  const casync::TaskGraph graph = mixed_graph(topology);
  const Result result = run(graph, cluster, network);
  std::ostringstream out;
  traces::write_chrome_trace(out, graph, {"a", "b", "c", "d", "e", "f"}, {&result.timeline});
  return out.str();
}

TEST_CASE("traces are the same for every run, and on every compiler") {
  // The fingerprints are those of a g++ 12 build; clang++ 14 must give the same.
  const struct {
    const char* topology;
    Network network;
    const char* fingerprint;
  } cases[] = {
      {"ps", Network::kPort, "200146a87724106c"},
      {"ps", Network::kFair, "ce17941293ae007f"},
      {"ring", Network::kPort, "8e161a68958e357a"},
      {"ring", Network::kFair, "9416d4c0467d693c"},
  };
  for (const auto& one : cases) {
    const std::string trace = trace_of(one.topology, one.network, busy_cluster());
    CHECK(trace == trace_of(one.topology, one.network, busy_cluster()));
    INFO(one.topology << " " << to_string(one.network));
    CHECK(io::fingerprint(trace) == one.fingerprint);
  }
}

TEST_CASE(
    "no task starts before its predecessors end, and serial resources run one task at a time") {
  for (const Network network : {Network::kPort, Network::kFair}) {
    const casync::TaskGraph graph = mixed_graph("ps");
    const Result result = run(graph, busy_cluster(), network);
    const traces::Timeline& times = result.timeline;
    std::map<std::pair<std::uint32_t, bool>, std::vector<std::pair<std::int64_t, std::int64_t>>>
        busy;
    for (TaskId id = 0; id < graph.tasks(); ++id) {
      CHECK(times.end[id] >= times.start[id]);
      for (const TaskId next : casync::successors(graph, id))
        CHECK(times.start[next] >= times.end[id]);
      const Kind kind = graph[id].kind;
      if (kind == Kind::kSend || kind == Kind::kRecv || times.start[id] == times.end[id]) continue;
      const bool computes = kind == Kind::kForward || kind == Kind::kBackward;
      busy[{graph[id].node, computes}].emplace_back(times.start[id].count(), times.end[id].count());
    }
    for (auto& [stream, spans] : busy) {
      std::sort(spans.begin(), spans.end());
      for (std::size_t i = 1; i < spans.size(); ++i) CHECK(spans[i].first >= spans[i - 1].second);
    }
  }
}

TEST_CASE("a slow node computes and codes more slowly") {
  costs::Cluster cluster = test_cluster(2);
  cluster.compute_speed[0] = 0.5;
  models::Model model = test_model({32});
  model.forward_s = 10e-6;
  // Node 0, the server, has half speed and ends forward at 20 us, after node 1's message has come.
  // Then it decodes and adds, encodes and sends, and node 1 decodes at nominal speed. Node 0's own
  // decode, 4 us, overlaps with the message.
  const Result result = run(test_graph(model, "ps", 2, 0, 1), cluster, Network::kPort);
  CHECK(result.compute.count() == 20 * kUs);
  CHECK(result.iteration.count() ==
        20 * kUs + 2 * kDecodeAdd + 2 * kEncode + kOverhead + 32 * kPsPerByte + kDecode);
}

TEST_CASE("ranks on one host share its cores") {
  // Four nodes encode at once (ring, K = 4): 3 us each alone, 6 us on one host of two cores.
  costs::Cluster cluster = test_cluster(4);
  cluster.host.assign(4, 0);
  cluster.cores_per_host = 2;
  const casync::TaskGraph graph = test_graph(test_model({32 * 4}), "ring", 4, 0, 4);
  const Result result = run(graph, cluster, Network::kFair);
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    if (graph[id].kind == Kind::kEncode && graph[id].role == casync::Role::kWorker) {
      CHECK(result.timeline.end[id].count() == 2 * kEncode);
    }
  }
}

/// A rank that computes with one thread, which never pauses.
casync::Computing one_thread() { return {.threads = 1, .forward = 1, .backward = 1, .steps = 1}; }

TEST_CASE("a core that computes backward is missing elsewhere") {
  // One node on one core: 100 us of backward for gradient 1 overlap with 3 us of encoding gradient
  // 0, each at half speed, so the encode ends at 6 us.
  costs::Cluster cluster = test_cluster(1);
  cluster.cores_per_host = 1;
  models::Model model = test_model({32, 32});
  model.gradients[1].ready_s = 100e-6;
  const casync::TaskGraph graph = test_graph(model, "ring", 1, 0, 1);
  const TaskCosts costs(test_profile(), {byte_codec()});
  Options options{.network = Network::kFair, .record_timeline = true};
  const auto first_encode_end = [&] {
    const Result result = simulate(graph, costs, cluster, options);
    TaskId id = 0;
    while (graph[id].kind != Kind::kEncode) ++id;
    return result.timeline.end[id].count();
  };
  CHECK(first_encode_end() == kEncode);
  options.computing = one_thread();
  CHECK(first_encode_end() == 2 * kEncode);
}

/// A message of 1 ms from node 0 to node 1.
casync::TaskGraph one_message(casync::TaskFlags flags = casync::kNoFlags) {
  GraphBuilder builder(2);
  const TaskId send = builder.add(
      {.amount = 1'000'000, .node = 0, .peer_offset = 1, .kind = Kind::kSend, .flags = flags});
  builder.edge(
      send, builder.add({.amount = 1'000'000, .node = 1, .peer_offset = 1, .kind = Kind::kRecv}));
  return std::move(builder).build();
}

/// Two nodes on a host of one core. The message of one_message() needs two cores at full speed.
costs::Cluster two_on_one_core() {
  costs::Cluster cluster = test_cluster(2);
  cluster.link.overhead_s = 0;
  cluster.host.assign(2, 0);
  cluster.cores_per_host = 1;
  cluster.link.core_s_per_byte = 2e-9;
  return cluster;
}

TEST_CASE("transfers need cores where the transport works on the CPU") {
  costs::Cluster cluster = two_on_one_core();
  const casync::TaskGraph graph = one_message();
  CHECK(run(graph, cluster, Network::kFair).iteration.count() == 2000 * kUs);
  CHECK(run(graph, cluster, Network::kPort).iteration.count() == 2000 * kUs);
  cluster.cores_per_host = 0;  // cores are not shared
  CHECK(run(graph, cluster, Network::kFair).iteration.count() == 1000 * kUs);
}

TEST_CASE("what interrupts long codec tasks needs more of the cores") {
  // The message needs two cores at full speed, and twice as many if its slice is long.
  costs::Cluster cluster = two_on_one_core();
  cluster.link.core_factor_interrupting = 2;
  const casync::TaskGraph long_slice = one_message(casync::kOfLongSlice);
  for (const Network network : {Network::kFair, Network::kPort}) {
    CHECK(run(one_message(), cluster, network).iteration.count() == 2000 * kUs);
    CHECK(run(long_slice, cluster, network).iteration.count() == 4000 * kUs);
  }
}

TEST_CASE("a message waits for a core where threads that code keep all of them") {
  // A message of 1 ms goes from one host of c cores to another. On each host k other nodes compute
  // all the time. If k >= c, the message waits (k/c - 1/2) turns at its sender, and twice that at
  // its receiver.
  constexpr double kTurn_s = 400e-6;
  const auto end = [&](int cores, std::uint32_t here, std::uint32_t there, Network network) {
    const std::uint32_t nodes = 2 + here + there;
    costs::Cluster cluster = test_cluster(nodes);
    cluster.link.overhead_s = 0;
    cluster.cores_per_host = cores;
    cluster.core_turn_s = kTurn_s;
    for (std::uint32_t node = 0; node < nodes; ++node) cluster.host[node] = node < 1 + here ? 0 : 1;
    GraphBuilder builder(nodes);
    const TaskId send =
        builder.add({.amount = 1'000'000, .node = 0, .peer_offset = 1 + here, .kind = Kind::kSend});
    const TaskId recv = builder.add(
        {.amount = 1'000'000, .node = 1 + here, .peer_offset = 1 + here, .kind = Kind::kRecv});
    builder.edge(send, recv);
    const auto busy = [&](std::uint32_t node) {  // for 100 ms
      builder.add({.amount = 100'000 * kUs, .node = node, .kind = Kind::kBackward});
    };
    for (std::uint32_t node = 1; node < 1 + here; ++node) busy(node);
    for (std::uint32_t node = 2 + here; node < nodes; ++node) busy(node);
    const casync::TaskGraph graph = std::move(builder).build();
    const Options options{.network = network, .computing = one_thread(), .record_timeline = true};
    const TaskCosts costs(test_profile(), {byte_codec()});
    const Result result = simulate(graph, costs, cluster, options);
    CHECK(result.timeline.start[recv] == result.timeline.end[recv]);
    return result.timeline.end[recv].count();
  };
  for (const Network network : {Network::kPort, Network::kFair}) {
    CHECK(end(2, 1, 1, network) == 1000 * kUs);  // a core is free at each end
    CHECK(end(2, 2, 0, network) == 1200 * kUs);  // 2/2 - 1/2 turns
    CHECK(end(2, 3, 0, network) == 1400 * kUs);  // 3/2 - 1/2
    CHECK(end(2, 0, 2, network) == 1400 * kUs);  // twice 2/2 - 1/2
    CHECK(end(2, 4, 3, network) == 2400 * kUs);  // 4/2 - 1/2, and twice 3/2 - 1/2
    CHECK(end(1, 1, 1, network) == 1600 * kUs);
  }
}

TEST_CASE("a transfer that needs two cores at each end has half its speed where there is one") {
  // A message of 1 ms from node 0 to node 1, each on a host of one core. At full speed it needs
  // four cores, two at each end.
  costs::Cluster cluster = test_cluster(2);
  cluster.link.overhead_s = 0;
  cluster.cores_per_host = 1;
  cluster.link.core_s_per_byte = 4e-9;
  const casync::TaskGraph graph = one_message();
  CHECK(run(graph, cluster, Network::kFair).iteration.count() == 2000 * kUs);
  CHECK(run(graph, cluster, Network::kPort).iteration.count() == 2000 * kUs);
}

TEST_CASE("kinds of work that overlap on a node slow each other") {
  // 10 us of backward and 3 us of encoding take twice as long while both run: the encode ends at 6
  // us, when 3 us of the backward are done; its other 7 us run alone.
  costs::Cluster cluster = test_cluster(2);
  cluster.overlap.compute_codec = 2;
  GraphBuilder builder(2);
  const TaskId backward = builder.add({.amount = 10 * kUs, .kind = Kind::kBackward});
  const TaskId encode = builder.add({.amount = 1, .kind = Kind::kEncode, .algorithm = 0});
  SECTION("two kinds") {
    const casync::TaskGraph graph = std::move(builder).build();
    for (const Network network : {Network::kFair, Network::kPort}) {
      const Result result = run(graph, cluster, network);
      CHECK(result.timeline.end[encode].count() == 6 * kUs);
      CHECK(result.timeline.end[backward].count() == 13 * kUs);
    }
  }
  SECTION("a transfer has the speed of its slower end") {
    // Node 1 sends 5 us of overhead + 7 us of bytes to node 0. There, the factors are 3 for
    // backward and transfers, and 1.5 for codecs and transfers. While the encode runs, the message
    // runs at speed 1/(3·1.5), the backward at 1/(2·3), the encode at 1/(2·1.5). The encode ends at
    // 3·3 = 9 us; 12 − 9/4.5 = 10 us of the message and 10 − 9/6 = 8.5 of the backward are left.
    // Then both run at 1/3: the backward ends at 9 + 8.5·3 = 34.5 us, with 1.5 us of the message
    // left.
    cluster.overlap = {.compute_codec = 2, .compute_transfer = 3, .codec_transfer = 1.5};
    const TaskId send =
        builder.add({.amount = 7000, .node = 1, .peer_offset = 1, .kind = Kind::kSend});
    builder.edge(send, builder.add({.amount = 7000, .peer_offset = 1, .kind = Kind::kRecv}));
    const casync::TaskGraph graph = std::move(builder).build();
    for (const Network network : {Network::kFair, Network::kPort}) {
      const Result result = run(graph, cluster, network);
      CHECK(result.timeline.end[encode].count() == 9 * kUs);
      CHECK(result.timeline.end[backward].count() == 34'500'000);
      CHECK(result.timeline.end[send].count() == 36 * kUs);
    }
  }
}

/// Matrix whose factors for a mix of half gemm, half norm are: computation 2 beside a codec and 3
/// beside a transfer; codecs 1.5 and transfers 4 beside computation.
costs::OverlapMatrix directed_matrix() {
  costs::OverlapMatrix matrix{.codec_beside_transfer = 1.25, .transfer_beside_codec = 2};
  matrix.classes.front() = {1, 2, 1, 3};
  matrix.classes.back() = {3, 4, 2, 5};
  return matrix;
}

TEST_CASE("computation and what runs beside it slow each other by its mix, each its own way") {
  costs::Cluster cluster = test_cluster(2);
  cluster.overlap.matrix = directed_matrix();
  GraphBuilder builder(2);
  const TaskId backward = builder.add({.amount = 10 * kUs, .kind = Kind::kBackward});
  const TaskId encode = builder.add({.amount = 1, .kind = Kind::kEncode, .algorithm = 0});
  const auto run_on = [&](const casync::TaskGraph& graph, auto check) {
    for (const Network network : {Network::kFair, Network::kPort}) {
      check(run(graph, cluster, network));
    }
  };
  SECTION("a codec beside computation") {
    // 3 us of encoding take 1.5 times as long, 4.5 us. In that time 4.5/2 = 2.25 us of the backward
    // are done; its other 7.75 us run alone.
    casync::TaskGraph graph = std::move(builder).build();
    graph.mix = models::Mix{0.5, 0, 0, 0, 0.5};
    run_on(graph, [&](const Result& result) {
      CHECK(result.timeline.end[encode].count() == 4'500'000);
      CHECK(result.timeline.end[backward].count() == 12'250'000);
    });
    // With norm only, the encode takes 6 us, in which 6/3 = 2 us of the backward are done.
    graph.mix = models::Mix{0, 0, 0, 0, 1};
    run_on(graph, [&](const Result& result) {
      CHECK(result.timeline.end[encode].count() == 6 * kUs);
      CHECK(result.timeline.end[backward].count() == 14 * kUs);
    });
    // The assumed mix has 5 % of norm, and only gemm and norm have factors other than 1: the encode
    // takes 1.05 times as long and the backward 1.10, rounded to 4301/4096 and 4506/4096. The
    // encode ends at 3·4301/4096 us = 3,150,147 ps (rounded up), when the backward has done
    // 3,150,147·4096/4506 = 2,863,515 ps (rounded down).
    graph.mix.reset();
    run_on(graph, [&](const Result& result) {
      CHECK(result.timeline.end[encode].count() == 3'150'147);
      CHECK(result.timeline.end[backward].count() == 3'150'147 + 10 * kUs - 2'863'515);
    });
  }
  SECTION("a transfer beside both") {
    // Node 1 sends a message of 12 us to node 0. While the encode runs, the message takes 4·2 = 8
    // times as long, the encode 1.5·1.25 = 1.875, the backward 2·3 = 6. The encode ends at 5.625
    // us, when the message has 12 − 5.625/8 = 11.296875 us left, and the backward 10 − 5.625/6 =
    // 9.0625. Then the backward runs at 1/3 and ends at 5.625 + 27.1875 = 32.8125 us, when the
    // message, at 1/4, has 11.296875 − 27.1875/4 = 4.5 us left.
    const TaskId send =
        builder.add({.amount = 7000, .node = 1, .peer_offset = 1, .kind = Kind::kSend});
    builder.edge(send, builder.add({.amount = 7000, .peer_offset = 1, .kind = Kind::kRecv}));
    casync::TaskGraph graph = std::move(builder).build();
    graph.mix = models::Mix{0.5, 0, 0, 0, 0.5};
    run_on(graph, [&](const Result& result) {
      CHECK(result.timeline.end[encode].count() == 5'625'000);
      CHECK(result.timeline.end[backward].count() == 32'812'500);
      CHECK(result.timeline.end[send].count() == 37'312'500);
    });
  }
}

TEST_CASE("where both directions share, a ring of two runs at half speed") {
  costs::Cluster cluster = test_cluster(2);
  cluster.link.bandwidth_both_ways = kBandwidth / 2;
  cluster.link.overhead_s = 0;
  const auto graph = test_graph(test_model({64}), "ring", 2, kRaw, 2);
  CHECK(run(graph, cluster, Network::kFair).iteration.count() == 2 * 2 * 128 * kPsPerByte);
}

TEST_CASE("a graph that cannot finish names the stuck tasks") {
  GraphBuilder builder(1);
  const TaskId a = builder.add({.amount = 1, .partition = 3, .kind = Kind::kMerge});
  const TaskId b = builder.add({.amount = 1, .partition = 4, .kind = Kind::kMerge});
  builder.edge(a, b);
  builder.edge(b, a);
  const casync::TaskGraph graph = std::move(builder).build();
  CHECK_THROWS_AS(run(graph, test_cluster(1), Network::kPort), io::RunError);
  CHECK_THROWS_WITH(run(graph, test_cluster(1), Network::kPort),
                    Contains("2 of 2 tasks are stuck") &&
                        Contains("Merge g0[3] on node 0 waits for Merge g0[4] on node 0"));
}

TEST_CASE("tasks that cannot be are refused by name") {
  const auto run_with = [](const casync::Task& task) {
    GraphBuilder builder(2);
    builder.add({});
    builder.add(task);
    return run(std::move(builder).build(), test_cluster(2), Network::kPort);
  };
  CHECK_THROWS_WITH(run_with({.node = 2, .kind = Kind::kEncode}),
                    Contains("task 1 (Encode) is on an unknown node") && Contains("0 to 1"));
  CHECK_THROWS_WITH(run_with({.peer_offset = 2, .kind = Kind::kSend}),
                    Contains("task 1 (Send) has peer_offset 2"));
  CHECK_THROWS_WITH(run_with({.amount = -5, .kind = Kind::kBackward}),
                    Contains("task 1 (Backward) has a negative amount, -5"));
}

TEST_CASE("graph and state take at most 64 bytes a task") {
  // 82 raw gradients in rings of 64 nodes, all ready at once, as in bench_sim.
  const models::Model model = test_model(std::vector<std::int64_t>(82, 1 << 20));
  for (const Network network : {Network::kPort, Network::kFair}) {
    const casync::TaskGraph graph = test_graph(model, "ring", 64, kRaw, 64);
    const Result result = simulate(graph, TaskCosts(test_profile(), {byte_codec()}),
                                   test_cluster(64), {.network = network});
    CHECK(result.state_bytes > graph_bytes(graph));
    CHECK(result.state_bytes <= 64 * std::int64_t{graph.tasks()});
  }
}

TEST_CASE("by need, the message of the last gradient goes first") {
  // Node 0 sends three messages of one byte to node 1: two are ready at 0, the third while the
  // first is being sent. The usual order is 0, 1, 2. By need, the last gradient of the waiting ones
  // goes first: 1, then 2, then 0.
  GraphBuilder builder(2);
  std::vector<TaskId> sends;
  const TaskId late = builder.add({.amount = kUs, .kind = Kind::kBackward});
  for (std::uint32_t gradient = 0; gradient < 3; ++gradient) {
    const casync::Task send = {
        .amount = 1, .gradient = gradient, .peer_offset = 1, .kind = Kind::kSend};
    sends.push_back(builder.add(send));
    builder.edge(
        sends.back(),
        builder.add(
            {.amount = 1, .gradient = gradient, .node = 1, .peer_offset = 1, .kind = Kind::kRecv}));
  }
  builder.edge(late, sends[2]);
  const casync::TaskGraph graph = std::move(builder).build();
  const auto position = [&](TransferOrder order, Network network) {
    const Result result =
        simulate(graph, TaskCosts(test_profile(), {byte_codec()}), test_cluster(2),
                 {.network = network, .transfer_order = order, .record_timeline = true});
    std::vector<std::int64_t> turns;
    for (const TaskId send : sends) {
      turns.push_back(result.timeline.start[send].count() / (kOverhead + kPsPerByte));
    }
    return turns;
  };
  for (const Network network : {Network::kPort, Network::kFair}) {
    CHECK(position(TransferOrder::kReady, network) == std::vector<std::int64_t>{0, 1, 2});
    CHECK(position(TransferOrder::kNeed, network) == std::vector<std::int64_t>{2, 0, 1});
  }
  CHECK_THROWS_WITH(parse_transfer_order("random"), Contains("'random'; known are ready, need"));
  CHECK_THROWS_WITH(parse_transfer_order("nede"), Contains("did you mean 'need'? known are"));
}

TEST_CASE("by need, a bulk group goes as its last member would, and input order does not matter") {
  // g1 and g2 are ready at 0, g0 and g3 at 1 us. g0 and g2 form a group, which has the place of g0.
  // Raw ps sends from node 0 to node 1: g1 and g3 (K = 1), and the second half of the group (K = N
  // = 2). While g1 is sent, g3 and the group become ready, and need puts g3 before the group.
  models::Model model = test_model({32, 3200, 32, 320});
  for (const std::uint32_t g : {0, 3}) model.gradients[g].ready_s = 1e-6;
  Scenario scenario = test_scenario(model, "ps", 2, kRaw, 1);
  scenario.plan.bulk.threshold_bytes = 1000;
  scenario.transfer_order = TransferOrder::kNeed;
  const casync::TaskGraph graph = expand(scenario);
  CHECK(graph.need_places == std::vector<std::uint32_t>{0, 0, 0, 3, 2});
  const Result result = simulate(scenario, graph, Timelines::kRecorded);
  std::map<std::int64_t, std::uint32_t> by_start;
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    const casync::Task& task = graph[id];
    if (task.kind != Kind::kSend || task.node != 0) continue;
    by_start.try_emplace(result.timeline.start[id].count(), task.gradient);
  }
  std::vector<std::uint32_t> order;
  for (const auto& [start, gradient] : by_start) order.push_back(gradient);
  order.resize(3);
  CHECK(order == std::vector<std::uint32_t>{1, 3, 4});
}

TEST_CASE("impossible costs are refused by name") {
  const casync::TaskGraph graph = test_graph(test_model({32}), "ring", 2, kRaw, 1);
  costs::Cluster cluster = test_cluster(2);
  SECTION("zero bandwidth") {
    cluster.link.bandwidth = 0;
    CHECK_THROWS_WITH(run(graph, cluster, Network::kFair), Contains("bandwidth must be positive"));
  }
  SECTION("negative latency") {
    cluster.link.latency_s = -1e-6;
    CHECK_THROWS_WITH(run(graph, cluster, Network::kFair), Contains("latency must be 0 s"));
  }
  SECTION("NaN overhead") {
    cluster.link.overhead_s = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_WITH(run(graph, cluster, Network::kFair), Contains("overhead must be 0 s"));
  }
  SECTION("a turn that is negative, too long or no number") {
    for (const double wrong : {-1.0, 2.0, std::nan("")}) {
      cluster.core_turn_s = wrong;
      CHECK_THROWS_WITH(run(graph, cluster, Network::kFair), Contains("core_turn must be 0 s"));
    }
  }
  SECTION("NaN bandwidth") {
    cluster.link.bandwidth = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_WITH(run(graph, cluster, Network::kFair), Contains("bandwidth must be positive"));
  }
  SECTION("an overlap that would make faster") {
    cluster.overlap.compute_codec = 0.5;
    CHECK_THROWS_WITH(run(graph, cluster, Network::kFair), Contains("overlap: factors must be 1"));
  }
  SECTION("stopped node") {
    cluster.compute_speed[1] = 0;
    CHECK_THROWS_WITH(run(graph, cluster, Network::kFair), Contains("compute speed of node 1"));
  }
  SECTION("cluster of another size") {
    CHECK_THROWS_WITH(run(graph, test_cluster(3), Network::kFair), Contains("3 nodes, the plan 2"));
  }
  SECTION("NaN codec cost") {
    costs::Profile profile = test_profile();
    profile.codecs["byte"].encode.pieces[0].a_s = std::numeric_limits<double>::quiet_NaN();
    const casync::TaskGraph coded = test_graph(test_model({32}), "ring", 2, 0, 1);
    CHECK_THROWS_WITH(simulate(coded, TaskCosts(profile, {byte_codec()}), cluster),
                      Contains("Encode of 32 elements"));
  }
  SECTION("times that 64 bits do not hold") {
    const auto refuses = [&](const casync::TaskGraph& asked, const std::string& what,
                             const std::string& remedy) {
      for (const Network network : {Network::kPort, Network::kFair}) {
        CHECK_THROWS_WITH(run(asked, cluster, network), Contains(what) && Contains(remedy));
      }
    };
    models::Model model = test_model({32});
    model.forward_s = 1;
    const casync::TaskGraph trained = test_graph(model, "ring", 2, 0, 1);
    SECTION("of a message") {
      cluster.link.bandwidth = cluster.link.bandwidth_both_ways = 1e-9;  // 128 B take 1.28e11 s
      refuses(graph, "Send of 128 bytes on node 0 to node 1 takes 1.28e+11 s", "check bandwidths");
    }
    SECTION("of a burst") {
      cluster.link.burst_bytes = INT64_MAX;
      refuses(graph, "a burst of 9223372036854775807 bytes", "more than 1e+06 s");
    }
    SECTION("of computation") {
      cluster.compute_speed[1] = 1e-200;
      refuses(trained, "Forward on node 1 takes 1e+200 s", "check compute speeds");
    }
    SECTION("of a codec") {
      cluster.compute_speed.assign(2, 1e-12);  // 3 us take 3e6 s
      refuses(test_graph(test_model({32}), "ring", 2, 0, 1), "Encode of 32 elements on node",
              "check compute speeds");
    }
    SECTION("of a task made by hand") {
      GraphBuilder builder(2);
      builder.add({.amount = INT64_MAX});
      refuses(std::move(builder).build(), "Forward on node 0 takes 9.22e+06 s", "check");
    }
    SECTION("of the GPUs of a node") {
      cluster.gpus_per_node = 2;
      cluster.gpu_link.bandwidth = 1e-9;
      refuses(casync::expand(test_model({32}), {.topology = "ring",
                                                .nodes = 2,
                                                .gpus_per_node = 2,
                                                .algorithms = {},
                                                .decisions = {{kRaw, 1}}}),
              "LocalReduce of 128 bytes", "check bandwidths");
    }
    SECTION("between racks") {
      cluster.racks = {costs::RackCosts{.hosts = 1, .oversubscription = 1e30}};
      CHECK_THROWS_WITH(run(graph, cluster, Network::kFair),
                        Contains("Send of 128 bytes") && Contains("oversubscription"));
    }
    SECTION("of a burst that cores hold up") {
      cluster.link.burst_bytes = 1000;
      cluster.link.core_s_per_byte = 1e6;
      cluster.cores_per_host = 1;
      CHECK_THROWS_WITH(run(graph, cluster, Network::kFair), Contains("Send of 128 bytes"));
    }
    SECTION("with jitter") {
      model.forward_s = 2000;
      const casync::TaskGraph slow = test_graph(model, "ring", 2, kRaw, 1);
      const Jitter jitter(std::vector<double>{1000});
      CHECK_THROWS_WITH(simulate(slow, TaskCosts(test_profile(), {}), cluster, {.jitter = &jitter}),
                        Contains("Forward on node 0 takes 2e+06 s") && Contains("jitter"));
    }
    SECTION("of all tasks together") {
      // Iterations of 1e6 s: four take 46 days, eight take 93, above the limit of 53.
      model.forward_s = 1e6;
      const casync::Plan plan{
          .topology = "ring", .nodes = 2, .algorithms = {}, .decisions = {{kRaw, 1}}};
      CHECK_NOTHROW(run(casync::expand_back_to_back(model, plan, 4), cluster, Network::kFair));
      refuses(casync::expand_back_to_back(model, plan, 8), "more than 53 days", "fewer iterations");
    }
  }
  SECTION("an algorithm that the profile lacks") {
    CHECK_THROWS_AS(TaskCosts(test_profile(), {{.name = "other", .encoded_bytes = {}}}),
                    io::InputError);
  }
  CHECK_THROWS_WITH(parse_network("star"), Contains("'star'; known are port, fair"));
  CHECK_THROWS_WITH(parse_network("fiar"), Contains("'fiar'; did you mean 'fair'? known are"));
}

}  // namespace
}  // namespace hipress::sim
