#include "sim/critical_path.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/sim/fixtures.hpp"

namespace hipress::sim {
namespace {

using casync::Kind;
using casync::TaskId;

/// Kinds and nodes of the tasks on the critical path: "Encode@0 Send@0 …".
std::string path_of(const casync::TaskGraph& graph, const Result& result) {
  std::string text;
  for (const TaskId id : critical_path(graph, result.timeline)) {
    text += (text.empty() ? "" : " ") + std::string(casync::to_string(graph[id].kind)) + "@" +
            std::to_string(graph[id].node);
  }
  return text;
}

TEST_CASE("the critical path of a compressed pair is the chain of its exchange") {
  // ps with one partition: node 0 is the server. The path is the worker's backward, encode and
  // message, the server's decode-and-add and encode, the message back, and the worker's decode.
  const auto graph = test_graph(test_model({320}), "ps", 2, 0, 1);
  const Result result = run(graph, test_cluster(2), Network::kFair);
  CHECK(path_of(graph, result) ==
        "Forward@1 Backward@1 Encode@1 Send@1 Recv@0 Decode@0 Encode@0 Send@0 Recv@1 Decode@1");
}

TEST_CASE("where a task waits for its codec stream, the path goes through what kept that busy") {
  // Node 0 is the server of gradients 0 and 2. Both are ready at once, so node 1 encodes one after
  // the other: the second encode starts as the first ends, although no edge joins them.
  const auto graph = test_graph(test_model({32, 32, 32}), "ps", 2, 0, 1);
  const Result result = run(graph, test_cluster(2), Network::kPort);
  const std::vector<TaskId> path = critical_path(graph, result.timeline);
  bool through_stream = false;
  for (std::size_t i = 1; i < path.size(); ++i) {
    CHECK(result.timeline.end[path[i - 1]] == result.timeline.start[path[i]]);
    const auto next = casync::successors(graph, path[i - 1]);
    through_stream = through_stream || std::find(next.begin(), next.end(), path[i]) == next.end();
  }
  CHECK(through_stream);
  CHECK(result.timeline.end[path.back()] == result.iteration);
  CHECK(result.timeline.start[path.front()].count() == 0);
}

TEST_CASE("the times of a path add up to the span that they are taken of") {
  // The compressed pair of the first test, with 10 us of forward and a latency of 7 us: 10 + 3 + s
  // + 7 + 4 + 3 + s + 7 + 2 us, with s = 5.32 us (5 us + 320 B).
  models::Model model = test_model({320});
  model.forward_s = 10e-6;
  costs::Cluster cluster = test_cluster(2);
  cluster.link.latency_s = 7e-6;
  const auto graph = test_graph(model, "ps", 2, 0, 1);
  const Result result = run(graph, cluster, Network::kFair);
  const std::vector<TaskId> path = critical_path(graph, result.timeline);
  const auto of = [](const PathTimes& times, Kind kind) {
    return times.by_kind[static_cast<std::size_t>(kind)].count();
  };
  const PathTimes all = path_times(graph, result.timeline, path, {});
  CHECK(of(all, Kind::kForward) == 10 * kUs);
  CHECK(of(all, Kind::kEncode) == 2 * kEncode);
  CHECK(of(all, Kind::kDecode) == kDecodeAdd + kDecode);
  CHECK(of(all, Kind::kSend) == 2 * (kOverhead + 320 * kPsPerByte));
  CHECK(all.wire.count() == 2 * 7 * kUs);
  // After 12 us, 1 us of the first Encode is left, and nothing of Forward.
  const PathTimes rest = path_times(graph, result.timeline, path, casync::Picoseconds(12 * kUs));
  CHECK(of(rest, Kind::kForward) == 0);
  CHECK(of(rest, Kind::kEncode) == 1 * kUs + kEncode);
  casync::Picoseconds sum = rest.wire;
  for (const casync::Picoseconds time : rest.by_kind) sum += time;
  CHECK(sum == result.iteration - casync::Picoseconds(12 * kUs));
}

TEST_CASE("an empty graph has no critical path") { CHECK(critical_path({}, {}).empty()); }

}  // namespace
}  // namespace hipress::sim
