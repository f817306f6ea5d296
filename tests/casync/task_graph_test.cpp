#include "casync/task_graph.hpp"

#include <catch2/catch.hpp>

#include "casync/graph_builder.hpp"
#include "casync/plan.hpp"

namespace hipress::casync {
namespace {

using Catch::Matchers::Contains;

Task send(std::uint32_t node, std::uint32_t peer_offset, std::int64_t bytes) {
  return {.amount = bytes, .node = node, .peer_offset = peer_offset, .kind = Kind::kSend};
}
Task recv(std::uint32_t node, std::uint32_t peer_offset, std::int64_t bytes) {
  return {.amount = bytes, .node = node, .peer_offset = peer_offset, .kind = Kind::kRecv};
}

Task local(Kind kind, std::int64_t bytes) { return {.amount = bytes, .node = 1, .kind = kind}; }

TEST_CASE("seconds become whole picoseconds, rounded to the nearest") {
  CHECK(from_seconds(1e-12).count() == 1);
  CHECK(from_seconds(1.4e-12).count() == 1);
  CHECK(from_seconds(1.6e-12).count() == 2);
  CHECK(from_seconds(-1.6e-12).count() == -2);
  CHECK(to_seconds(Picoseconds(2'000'000'000'000)) == 2.0);
}

TEST_CASE("slices are ceil(m/K) rounded up to 32, the last shorter, then empty") {
  // With 100 elements and K = 3, ceil(100/3) = 34 is rounded up to 64: slices of 64, 36, 0.
  CHECK(slice(100, 3, 0).begin == 0);
  CHECK(slice(100, 3, 0).elements == 64);
  CHECK(slice(100, 3, 1).begin == 64);
  CHECK(slice(100, 3, 1).elements == 36);
  CHECK(slice(100, 3, 2).elements == 0);
  // A size beyond 32 bits: 2^40 + 1 elements in two slices.
  const std::int64_t huge = (std::int64_t{1} << 40) + 1;
  CHECK(slice(huge, 2, 0).elements + slice(huge, 2, 1).elements == huge);
  CHECK(slice(huge, 2, 1).begin % 32 == 0);
}

TEST_CASE("slices cover every element once") {
  for (const std::int64_t elements : {1, 3, 31, 32, 33, 1000, 4096}) {
    for (std::int64_t partitions = 1; partitions <= 40; ++partitions) {
      std::int64_t next = 0;
      for (std::int64_t k = 0; k < partitions; ++k) {
        const Slice part = slice(elements, partitions, k);
        CHECK(part.begin == next);
        next += part.elements;
      }
      CHECK(next == elements);
    }
  }
}

TEST_CASE("a graph of more tasks or edges than ids can count is refused") {
  GraphBuilder builder(1, UINT32_MAX, Folding::kNone, 2);
  const TaskId a = builder.add({});
  const TaskId b = builder.add({.kind = Kind::kBackward});
  CHECK_THROWS_WITH(builder.add({}), Contains("more than 2 tasks") && Contains("fewer nodes"));
  builder.edge(a, b);
  builder.edge(a, b);
  CHECK_THROWS_WITH(builder.edge(a, b), Contains("more than 2 edges") && Contains("fewer nodes"));
  CHECK(std::move(builder).build().tasks() == 2);
}

TEST_CASE("a sound graph passes the check") {
  GraphBuilder builder(3);
  const TaskId a = builder.add(send(2, 1, 64));
  builder.edge(a, builder.add(recv(0, 1, 64)));
  const TaskGraph graph = std::move(builder).build();
  CHECK_NOTHROW(check(graph));
  CHECK(graph.peer(graph[0]) == 0);
  CHECK(graph.peer(graph[1]) == 2);
  CHECK(describe(graph, 0) == "Send g0[0] on node 2 to node 0");
  CHECK(describe(graph, 1, "fc6") == "Recv fc6[0] on node 0 from node 2");
}

TEST_CASE("a graph counts each task's predecessors, parallel edges too") {
  GraphBuilder builder(1);
  const TaskId a = builder.add({}), b = builder.add({}), c = builder.add({});
  builder.edge(b, c);
  builder.edge(a, c);
  builder.edge(a, c);
  builder.edge(a, b);
  TaskGraph graph = std::move(builder).build();
  CHECK(graph.predecessors == std::vector<std::uint32_t>{0, 1, 3});
  graph.predecessors.pop_back();
  CHECK_THROWS_WITH(check(graph), Contains("predecessors of 2 tasks, but has 3"));
}

TEST_CASE("a broken graph is refused with the culprit's name") {
  GraphBuilder builder(2);
  SECTION("cycle") {
    const TaskId a = builder.add({.kind = Kind::kEncode});
    const TaskId b = builder.add({.kind = Kind::kDecode});
    const TaskId c =
        builder.add({.partition = 7, .kind = Kind::kMerge});  // after the cycle, not in it
    builder.edge(a, b);
    builder.edge(b, a);
    builder.edge(b, c);
    CHECK_THROWS_WITH(check(std::move(builder).build()),
                      Contains("cycle") && Contains("Encode g0[0] on node 0") &&
                          Contains("Decode g0[0] on node 0") && !Contains("g0[7]"));
  }
  SECTION("send without receive") {
    builder.add(send(0, 1, 8));
    CHECK_THROWS_WITH(check(std::move(builder).build()),
                      Contains("Send g0[0] on node 0 to node 1 has 0 receives"));
  }
  SECTION("receive without send") {
    builder.add(recv(0, 1, 8));
    CHECK_THROWS_WITH(check(std::move(builder).build()),
                      Contains("Recv g0[0] on node 0") && Contains("0 sends"));
  }
  SECTION("receive on another node") {
    const TaskId a = builder.add(send(0, 1, 8));
    builder.edge(a, builder.add(recv(0, 1, 8)));
    CHECK_THROWS_WITH(check(std::move(builder).build()), Contains("goes to node 1"));
  }
  SECTION("other number of bytes") {
    const TaskId a = builder.add(send(0, 1, 8));
    builder.edge(a, builder.add(recv(1, 1, 9)));
    CHECK_THROWS_WITH(check(std::move(builder).build()),
                      Contains("sends 8 bytes, but its Recv takes 9"));
  }
  SECTION("unknown node") {
    builder.add({.node = 5, .kind = Kind::kEncode});
    CHECK_THROWS_WITH(check(std::move(builder).build()),
                      Contains("on node 5 is on an unknown node"));
  }
  SECTION("negative amount") {
    builder.add({.amount = -1, .kind = Kind::kEncode});
    CHECK_THROWS_WITH(check(std::move(builder).build()), Contains("negative amount, -1"));
  }
  SECTION("sum over a node's GPUs that is not gathered again") {
    builder.add(local(Kind::kLocalReduce, 8));
    CHECK_THROWS_WITH(check(std::move(builder).build()),
                      Contains("LocalReduce g0 on node 1 has no LocalBroadcast"));
  }
  SECTION("gathering of what was not summed over a node's GPUs") {
    const TaskId a = builder.add(local(Kind::kLocalBroadcast, 8));
    builder.edge(a, builder.add(local(Kind::kLocalReduce, 8)));
    CHECK_THROWS_WITH(check(std::move(builder).build()),
                      Contains("LocalBroadcast g0 on node 1 has no LocalReduce"));
  }
  SECTION("two sums over a node's GPUs, gathered once") {
    const TaskId a = builder.add(local(Kind::kLocalReduce, 8));
    const TaskId b = builder.add(local(Kind::kLocalReduce, 8));
    builder.edge(a, b);
    builder.edge(b, builder.add(local(Kind::kLocalBroadcast, 8)));
    CHECK_THROWS_WITH(check(std::move(builder).build()),
                      Contains("LocalReduce g0 on node 1 follows another one"));
  }
  SECTION("other number of bytes within a node") {
    const TaskId a = builder.add(local(Kind::kLocalReduce, 8));
    builder.edge(a, builder.add(local(Kind::kLocalBroadcast, 12)));
    CHECK_THROWS_WITH(check(std::move(builder).build()),
                      Contains("gathers 12 bytes, but its LocalReduce sums 8"));
  }
}

}  // namespace
}  // namespace hipress::casync
