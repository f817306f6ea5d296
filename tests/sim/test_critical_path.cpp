#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/critical_path.hpp"
#include "tests/sim/fixtures.hpp"

namespace hipress::sim {
namespace {

using casync::Kind;
using casync::TaskId;

/// The kinds along the path, "Encode@0 Send@0 …", where a node is named behind each.
std::string path_of(const casync::TaskGraph& graph, const Result& result) {
  std::string text;
  for (const TaskId id : critical_path(graph, result.timeline)) {
    text += (text.empty() ? "" : " ") + std::string(casync::to_string(graph[id].kind)) + "@" +
            std::to_string(graph[id].node);
  }
  return text;
}

TEST_CASE("the critical path of a compressed pair is the chain of its exchange") {
  // ps, gradient 0, one partition: node 0 serves. The worker's backward, encode and message come
  // first, then the server's decode-and-add and encode, the message back, and the worker's decode.
  const auto graph = test_graph(test_model({320}), "ps", 2, 0, 1);
  const Result result = run(graph, test_cluster(2), Network::kFair);
  CHECK(path_of(graph, result) ==
        "Forward@1 Backward@1 Encode@1 Send@1 Recv@0 Decode@0 Encode@0 Send@0 Recv@1 Decode@1");
}

TEST_CASE("where a task waits for its codec stream, the path goes through what kept that busy") {
  // Gradients 0 and 2 have server 0: node 1 encodes both for it, all being ready at once, so the
  // second starts as the first ends although no edge joins them.
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

TEST_CASE("an empty graph has no critical path") { CHECK(critical_path({}, {}).empty()); }

}  // namespace
}  // namespace hipress::sim
