#include "runtime/program.hpp"

#include <catch2/catch.hpp>

#include "casync/graph_builder.hpp"
#include "tests/runtime/fixtures.hpp"

using namespace hipress;
using namespace hipress::runtime;
using casync::Kind;
using casync::TaskId;
using Catch::Contains;

namespace {

/// A graph of one gradient of 64 raw elements between two nodes, built by hand.
struct HandMade {
  models::Model model = make_model({64});
  plans::ResolvedPlan plan = make_plan(model, "ps", 2, 1, nullptr);
  casync::GraphBuilder builder{2};
  casync::TaskGraph graph;

  HandMade() { builder.name_operands(); }
  std::uint32_t slice(std::uint32_t node) { return builder.slice_of({.node = node}, 256); }
  TaskId add(Kind kind, std::uint32_t node, std::int64_t amount, casync::Operands operands = {}) {
    return builder.add({.amount = amount, .node = node, .peer_offset = 1, .kind = kind}, operands);
  }
  /// Sends the whole slice from node 0 to node 1; returns the Recv, which writes `message`.
  TaskId transfer(std::uint32_t message) {
    const TaskId send = add(Kind::kSend, 0, 256, {slice(0), casync::kNoIndex});
    const TaskId recv = add(Kind::kRecv, 1, 256, {casync::kNoIndex, message});
    builder.edge(send, recv);
    return recv;
  }
  TaskId transfer() { return transfer(builder.message(1, casync::kRaw, 256)); }
  /// Merges that message on node 1.
  TaskId merge(std::uint32_t message) { return add(Kind::kMerge, 1, 64, {message, slice(1)}); }
  Program program(std::uint32_t node) {
    graph = std::move(builder).build();
    return Program(graph, model, plan, node);
  }
};

}  // namespace

TEST_CASE("a rank's program holds its own tasks and messages") {
  // In ps with N = 2, K = 1 and onebit, node 0 is the server of g0. Node 1 has Forward, Backward,
  // Encode, Send, Recv of the mean and Decode, and two messages: its own and the mean's.
  const Case made = make_case("ps", 2, 1, "onebit", {100});
  const Program program(made.graph, made.model, made.plan, 1);
  std::vector<Kind> kinds;
  for (const LocalTask& local : program.tasks()) kinds.push_back(local.task.kind);
  CHECK(kinds == std::vector{Kind::kForward, Kind::kBackward, Kind::kEncode, Kind::kSend,
                             Kind::kRecv, Kind::kDecode});
  REQUIRE(program.messages().size() == 2);
  CHECK(program.messages()[0].capacity == made.plan.codecs[0]->encoded_bytes(100));
  CHECK(program.messages()[1].offset % 64 == 0);
  CHECK(program.tasks()[3].message == program.tasks()[2].message);
  CHECK(program.tasks()[5].message == program.tasks()[4].message);
  CHECK(program.tasks()[4].waits_for == 1);
  CHECK(program.backward()[0] == 1);
}

TEST_CASE("a server's raw receives that are merged land in buffers, the worker's in its slice") {
  const Case made = make_case("ps", 2, 1, "raw", {100});
  CHECK(Program(made.graph, made.model, made.plan, 0).messages().size() == 1);
  CHECK(Program(made.graph, made.model, made.plan, 1).messages().empty());
}

TEST_CASE("tasks that are ready together are served by gradient, peer_offset, partition and kind") {
  // In raw ps with N = 3 and K = 3, g0's partitions have the servers 0, 1, 2, and g1's have 1, 2,
  // 0. Node 0 sends slices of g0 to nodes 1 (peer offset 1) and 2 (offset 2), then those of g1.
  const Case made = make_case("ps", 3, 3, "raw", {300, 300});
  const Program program(made.graph, made.model, made.plan, 0);
  std::vector<const LocalTask*> sends;
  for (const std::uint32_t index : program.sends()) {
    const LocalTask& local = program.tasks()[index];
    const bool of_mean = local.task.partition == (3 - local.task.gradient) % 3;
    if (!of_mean) sends.push_back(&local);
  }
  std::ranges::sort(sends, {}, [](const LocalTask* local) { return local->order; });
  std::vector<std::pair<std::uint32_t, std::uint32_t>> order;
  for (const LocalTask* local : sends)
    order.emplace_back(local->task.gradient, local->task.peer_offset);
  CHECK(order ==
        std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 1}, {0, 2}, {1, 1}, {1, 2}});
}

TEST_CASE("the schedule of backward follows the ready times") {
  models::Model model = make_model({10, 20});
  model.forward_s = 0.5;
  model.gradients[0].ready_s = 0.003;
  model.gradients[1].ready_s = 0.001;
  const plans::ResolvedPlan plan = make_plan(model, "ps", 1, 1, nullptr);
  const casync::TaskGraph graph = casync::expand_to_run(model, plan.plan);
  const Program program(graph, model, plan, 0);
  REQUIRE(program.schedule().size() == 2);
  CHECK(program.schedule()[0].gradient == 1);
  CHECK(program.schedule()[0].after_start == std::chrono::milliseconds(1));
  CHECK(program.schedule()[1].gradient == 0);
  CHECK(program.schedule()[1].after_start == std::chrono::milliseconds(3));
  CHECK(program.forward() == casync::from_seconds(0.5));
}

TEST_CASE("graphs that cannot be executed are refused with the task's name") {
  HandMade made;
  SECTION("a Merge without a message") {
    made.add(Kind::kMerge, 0, 64);
    CHECK_THROWS_WITH(made.program(0), Contains("Merge g0[0] on node 0 has no message before it"));
  }
  SECTION("a message that two tasks write") {
    const std::uint32_t message = made.builder.message(1, casync::kRaw, 256);
    made.transfer(message);
    made.transfer(message);
    CHECK_THROWS_WITH(made.program(1), Contains("writes the message of Recv g0[0] on node 1"));
  }
  SECTION("a message that nothing has written") {
    made.merge(made.builder.message(1, casync::kRaw, 256));
    CHECK_THROWS_WITH(made.program(1), Contains("Merge g0[0] on node 1 reads a message"));
  }
  SECTION("another node's memory") {
    made.add(Kind::kMerge, 0, 64, {made.slice(1), made.slice(0)});
    CHECK_THROWS_WITH(made.program(0), Contains("works on memory that its node lacks"));
  }
  SECTION("a graph that is made to be simulated") {
    const casync::TaskGraph graph = casync::expand(made.model, made.plan.plan);
    CHECK_THROWS_WITH(Program(graph, made.model, made.plan, 0), Contains("name no memory"));
  }
  SECTION("a Recv without a Send") {
    made.add(Kind::kRecv, 0, 256);
    CHECK_THROWS_WITH(made.program(0), Contains("Recv g0[0] on node 0 from node 1 has no message"));
  }
  SECTION("ids in no topological order") {
    const std::uint32_t message = made.builder.message(1, casync::kRaw, 256);
    const TaskId merge = made.add(Kind::kMerge, 1, 64, {casync::kNoIndex, made.slice(1)});
    made.builder.edge(made.transfer(message), merge);
    CHECK_THROWS_WITH(made.program(1), Contains("Merge g0[0] on node 1 comes before Recv"));
  }
  SECTION("a transfer of more than the slice") {
    const TaskId send = made.add(Kind::kSend, 0, 260);
    made.builder.edge(send, made.add(Kind::kRecv, 1, 260));
    CHECK_THROWS_WITH(made.program(0),
                      Contains("has the amount 260, but its slice has 64 elements"));
  }
  SECTION("a gradient that the model lacks") {
    const TaskId send =
        made.builder.add({.amount = 256, .gradient = 7, .peer_offset = 1, .kind = Kind::kSend});
    made.builder.edge(send, made.add(Kind::kRecv, 1, 256));
    CHECK_THROWS_WITH(made.program(0), Contains("Send g7[0]") && Contains("lacks"));
  }
  SECTION("a partition that the plan lacks") {
    const TaskId send =
        made.builder.add({.amount = 256, .partition = 1, .peer_offset = 1, .kind = Kind::kSend});
    made.builder.edge(send, made.add(Kind::kRecv, 1, 256));
    CHECK_THROWS_WITH(made.program(0), Contains("a partition beyond the plan's 1"));
  }
  SECTION("an algorithm that the plan lacks") {
    made.builder.add({.amount = 64, .kind = Kind::kEncode, .algorithm = 3});
    CHECK_THROWS_WITH(made.program(0), Contains("Encode g0[0] on node 0 is of an algorithm"));
  }
  SECTION(
      "an all-reduce that casts with what the plan lacks, or cannot add, or to another length") {
    const auto reduce = [&](const std::string& algorithm, std::int64_t amount) {
      HandMade all;
      if (!algorithm.empty()) all.plan.codecs.push_back(kernels::make_codec(algorithm));
      all.builder.add({.amount = amount, .kind = Kind::kAllReduce, .algorithm = 0},
                      {all.slice(0), all.builder.message(0, 0, amount)});
      return all.program(0).messages().size();
    };
    CHECK_THROWS_WITH(reduce("", 128), Contains("AllReduce g0[0] on node 0 is of an algorithm"));
    CHECK_THROWS_WITH(reduce("onebit", 128), Contains("whose messages cannot be added"));
    CHECK_THROWS_WITH(reduce("fp16", 256), Contains("its 64 elements are encoded in 128 bytes"));
    CHECK(reduce("bf16", 128) == 1);
  }
  SECTION("computation that waits for communication") {
    const TaskId recv = made.transfer();
    made.builder.edge(recv, made.add(Kind::kBackward, 1, 5));
    CHECK_THROWS_WITH(made.program(1), Contains("Backward g0 on node 1 waits for Recv"));
  }
  SECTION("a gradient that becomes ready twice") {
    made.add(Kind::kBackward, 0, 5);
    made.add(Kind::kBackward, 0, 5);
    CHECK_THROWS_WITH(made.program(0), Contains("Backward g0 on node 0"));
  }
  SECTION("an edge between nodes that is no message") {
    const TaskId backward = made.add(Kind::kBackward, 0, 5);
    const TaskId send = made.add(Kind::kSend, 1, 256);
    made.builder.edge(backward, send);
    made.builder.edge(send, made.add(Kind::kRecv, 0, 256));
    CHECK_THROWS_WITH(made.program(1), Contains("only a Send crosses nodes"));
  }
}
