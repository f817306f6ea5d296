// Tests computation that keeps cores and memory busy, against closed forms.

#include <catch2/catch.hpp>
#include <cmath>
#include <ostream>

#include "casync/graph_builder.hpp"
#include "io/error.hpp"
#include "sim/slowdown.hpp"
#include "tests/sim/fixtures.hpp"

namespace hipress::sim {
namespace {

using casync::Computing;
using casync::GraphBuilder;
using casync::Kind;
using Catch::Matchers::Contains;

/// Load of one host: ranks that compute, a rank that encodes, and a message between two ranks.
struct Mix {
  int ranks = 1;
  Computing computing = {};
  double flow_cores = 0;  ///< cores that the message keeps busy at full speed, both ends together
};

constexpr std::int64_t kLong = 1'000'000 * kUs;
constexpr std::int64_t kShort = 1000 * kUs;

/// Speeds of computation, codec and transfer. Each is found from the time that work of kShort takes
/// while the other two run. Equal if these times differ by less than two picoseconds.
struct Speeds {
  double computing = 0, codec = 0, transfer = 0;
  bool operator==(const Speeds& other) const {
    constexpr double kTwo = 2.0 / static_cast<double>(kShort);
    return std::abs(computing - other.computing) < kTwo && std::abs(codec - other.codec) < kTwo &&
           std::abs(transfer - other.transfer) < kTwo;
  }
};
std::ostream& operator<<(std::ostream& out, const Speeds& speeds) {
  return out << speeds.computing << ", " << speeds.codec << ", " << speeds.transfer;
}

class Host {
 public:
  Host(int cores, const Mix& mix) : mix_(mix) {
    const auto nodes = static_cast<std::uint32_t>(mix.ranks) + 3;
    cluster_ = test_cluster(nodes);
    cluster_.host.assign(nodes, 0);
    cluster_.cores_per_host = cores;
    cluster_.link.overhead_s = 0;
    cluster_.link.core_s_per_byte = mix.flow_cores / cluster_.link.bandwidth;
  }

  costs::Cluster& cluster() { return cluster_; }

  Speeds speeds() const {
    return {speed_of(kShort, kLong, kLong), speed_of(kLong, kShort, kLong),
            speed_of(kLong, kLong, kShort)};
  }

 private:
  /// Speed of the one whose work is kShort.
  double speed_of(std::int64_t computing, std::int64_t codec, std::int64_t transfer) const {
    const auto first = static_cast<std::uint32_t>(mix_.ranks);
    GraphBuilder builder(cluster_.nodes);
    for (std::uint32_t node = 0; node < first; ++node) {
      builder.add({.amount = computing, .node = node, .kind = Kind::kForward});
    }
    const casync::TaskId encode =
        builder.add({.amount = 32, .node = first, .kind = Kind::kEncode, .algorithm = 0});
    const auto bytes =
        static_cast<std::int64_t>(cluster_.link.bandwidth * 1e-12 * static_cast<double>(transfer));
    const casync::TaskId send =
        builder.add({.amount = bytes, .node = first + 1, .peer_offset = 1, .kind = Kind::kSend});
    builder.edge(
        send,
        builder.add({.amount = bytes, .node = first + 2, .peer_offset = 1, .kind = Kind::kRecv}));
    const casync::TaskGraph graph = std::move(builder).build();
    costs::Profile profile = test_profile();
    profile.codecs["byte"].encode = constant(codec);
    const Result result =
        simulate(graph, TaskCosts(profile, {byte_codec()}), cluster_,
                 {.network = Network::kFair, .computing = mix_.computing, .record_timeline = true});
    const casync::TaskId id = computing == kShort ? 0 : codec == kShort ? encode : send;
    return static_cast<double>(kShort) / static_cast<double>(result.timeline.end[id].count());
  }

  Mix mix_;
  costs::Cluster cluster_;
};

Computing threads(int count, double cores) {
  return {.threads = count, .forward = cores, .backward = cores, .steps = cores};
}

}  // namespace

TEST_CASE("computing threads, a codec thread and a transfer's two share a host's cores") {
  // k computing threads, the codec's and the transfer's two each want a core of c: each gets c/(k +
  // 3).
  CHECK(Host(8, {4, threads(1, 1), 2}).speeds() == Speeds{1, 1, 1});
  CHECK(Host(2, {1, threads(1, 1), 2}).speeds() == Speeds{0.5, 0.5, 0.5});
  CHECK(Host(2, {5, threads(1, 1), 2}).speeds() == Speeds{0.25, 0.25, 0.25});
  CHECK(Host(6, {3, threads(3, 3), 2}).speeds() == Speeds{0.5, 0.5, 0.5});
  // A transfer that wants half a core gets it; 3 computing threads and the codec's share 2 - 1/2.
  CHECK(Host(2, {3, threads(1, 1), 0.5}).speeds() == Speeds{0.375, 0.375, 1});
  // Two threads that pause half of the time want half a core each, and get it beside a codec's.
  CHECK(Host(2, {1, threads(2, 1), 0}).speeds() == Speeds{1, 1, 1});
  // Four ranks with such threads want 4 of 2 cores: their 8 threads and the codec's get 2/9 of a
  // core each, which is 4/9 of what the former want, and 2/9 of what the codec wants.
  CHECK(Host(2, {4, threads(2, 1), 0}).speeds() == Speeds{4.0 / 9, 2.0 / 9, 1});
}

TEST_CASE("computation of a host whose cores are not shared takes what it takes alone") {
  CHECK(Host(0, {5, threads(1, 1), 2}).speeds() == Speeds{1, 1, 1});
}

TEST_CASE("memory is shared by what computation and codecs move") {
  // Four ranks, each with half of the memory bandwidth.
  Computing computing = threads(1, 1);
  computing.memory_traffic = 5e9;
  Host host(8, {4, computing, 0});
  host.cluster().host_memory_bandwidth = 10e9;
  CHECK(host.speeds() == Speeds{0.5, 1, 1});
  host.cluster().host_memory_bandwidth = 20e9;
  CHECK(host.speeds() == Speeds{1, 1, 1});
}

TEST_CASE("more threads than a host has cores are refused") {
  const casync::TaskGraph graph = [] {
    models::Model model = test_model({32});
    model.threads = 4;
    return test_graph(model, "ring", 2, 0, 1);
  }();
  costs::Cluster cluster = test_cluster(2);
  cluster.cores_per_host = 2;
  CHECK_THROWS_WITH(simulate(graph, TaskCosts(test_profile(), {byte_codec()}), cluster),
                    Contains("4 threads a rank, but a host has 2 cores"));
  cluster.cores_per_host = 4;
  CHECK_NOTHROW(simulate(graph, TaskCosts(test_profile(), {byte_codec()}), cluster));
}

TEST_CASE("an all-reduce takes cores from those who compute") {
  // Without computation, the library keeps at most one of the two cores busy per node.
  GraphBuilder builder(2);
  for (const std::uint32_t node : {0U, 1U}) {
    builder.add({.amount = 1'000'000, .node = node, .peer_offset = 1, .kind = Kind::kAllReduce});
    builder.add({.amount = kLong, .node = node, .kind = Kind::kForward});
  }
  const casync::TaskGraph graph = std::move(builder).build();
  costs::Cluster cluster = test_cluster(2);
  cluster.host.assign(2, 0);
  cluster.cores_per_host = 2;
  cluster.link.core_s_per_byte = 2e-9;  // 2 ms of core time within 1 ms
  costs::Profile profile = test_profile();
  profile.all_reduce[2] = constant(kShort);
  const auto ends = [&](const Computing& computing) {
    const Result result =
        simulate(graph, TaskCosts(profile, {byte_codec()}), cluster,
                 {.network = Network::kFair, .computing = computing, .record_timeline = true});
    return result.timeline.end[0].count();
  };
  CHECK(ends({}) == kShort);
  // Six threads share two cores: each of the library's, which want half a core, gets a third.
  CHECK(std::abs(ends(threads(1, 1)) - kShort * 3 / 2) <= 1);  // a third is rounded to 2^-32
}

namespace {

/// Two ranks on a host of one core. Each gradient of 32 elements takes 3 us to encode.
Scenario two_ranks_on_one_core() {
  models::Model model = test_model({32, 32});
  model.threads = 1;
  model.forward_s = 10e-6;
  model.forward_cores = 1;
  for (std::size_t i = 0; i < 2; ++i) {
    model.gradients[i].ready_s = 10e-6 * static_cast<double>(i + 1);
    model.gradients[i].cores = 1;
  }
  Scenario scenario = test_scenario(std::move(model), "ring", 2, 0, 2);
  scenario.cluster.host.assign(2, 0);
  scenario.cluster.cores_per_host = 1;
  return scenario;
}

}  // namespace

TEST_CASE("what computation lost is its length less its work, and is shared out among its rivals") {
  const Scenario scenario = two_ranks_on_one_core();
  const casync::TaskGraph graph = expand(scenario);
  const Result result = simulate(scenario, graph, Timelines::kRecorded);
  const Slowdowns lost = slowdowns(scenario, graph, result);
  REQUIRE(lost.of_nodes.size() == 2);
  Picoseconds computed{};
  for (casync::TaskId id = 0; id < graph.tasks(); ++id) {
    const Picoseconds length = result.timeline.end[id] - result.timeline.start[id];
    if (!casync::is_computation(graph[id])) {
      CHECK(lost.of_tasks[id].count() == 0);
      continue;
    }
    CHECK(lost.of_tasks[id] == length - Picoseconds(graph[id].amount));
    if (graph[id].node == 0) computed += lost.of_tasks[id];
  }
  const Slowdown& first = lost.of_nodes[0];
  CHECK(std::abs((first.total() - computed).count()) <= 6);  // rounding of three tasks
  CHECK(first.by_codecs.count() > 0);
  CHECK(first.by_transfers.count() == 0);  // transfers need no cores here
  // Two forwards on one core take twice as long, as does other work of both ranks at once.
  CHECK(first.by_computation.count() >= 10 * kUs);
}

TEST_CASE("nothing is slowed where nothing is shared") {
  Scenario scenario = two_ranks_on_one_core();
  scenario.cluster.cores_per_host = 0;
  const casync::TaskGraph graph = expand(scenario);
  const Slowdowns lost =
      slowdowns(scenario, graph, simulate(scenario, graph, Timelines::kRecorded));
  CHECK(lost.of_tasks.empty());
  CHECK(lost.of_nodes.at(1).total().count() == 0);
}

TEST_CASE("a device's computation is slowed by the codecs and transfers beside it") {
  // On each node, backward overlaps with encodes and messages, but only codecs slow it.
  Scenario scenario = two_ranks_on_one_core();
  scenario.cluster.cores_per_host = 0;
  scenario.cluster.overlap.compute_codec = 2;
  const casync::TaskGraph graph = expand(scenario);
  const Slowdowns lost =
      slowdowns(scenario, graph, simulate(scenario, graph, Timelines::kRecorded));
  CHECK(lost.of_nodes[0].by_codecs.count() > 0);
  CHECK(lost.of_nodes[0].by_codecs == lost.of_nodes[0].total());
}

}  // namespace hipress::sim
