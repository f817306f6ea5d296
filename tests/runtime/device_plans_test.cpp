// Tests what is decided before a device runs anything: rounds, waits of streams, memory layout.

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "casync/graph_builder.hpp"
#include "io/error.hpp"
#include "runtime/device_layout.hpp"
#include "runtime/rounds.hpp"
#include "runtime/stream_schedule.hpp"
#include "tests/runtime/fake_device.hpp"
#include "tests/runtime/fixtures.hpp"

using namespace hipress;
using namespace hipress::runtime;
using casync::Kind;
using casync::TaskId;
using Catch::Matchers::Contains;

namespace {

/// Requires that every Send and AllReduce is in a round, and depends only on earlier rounds.
void require_order(const casync::TaskGraph& graph, const std::vector<Round>& rounds) {
  std::vector<int> round_of(graph.tasks(), -1);
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    for (const TaskId id : rounds[r].sends) round_of[id] = static_cast<int>(r);
    for (const auto& reduce : rounds[r].reduces) {
      for (const TaskId id : reduce) round_of[id] = static_cast<int>(r);
    }
  }
  std::vector<int> last(graph.tasks(), -1);  // ids are a topological order
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    const bool moves = graph[id].kind == Kind::kSend || graph[id].kind == Kind::kAllReduce;
    REQUIRE(moves == (round_of[id] >= 0));
    if (moves) REQUIRE(last[id] < round_of[id]);
    last[id] = std::max(last[id], round_of[id]);
    for (const TaskId next : casync::successors(graph, id)) {
      last[next] = std::max(last[next], last[id]);
    }
  }
}

std::size_t count(const casync::TaskGraph& graph, Kind kind) {
  std::size_t found = 0;
  for (TaskId id = 0; id < graph.tasks(); ++id) found += graph[id].kind == kind ? 1 : 0;
  return found;
}

}  // namespace

TEST_CASE("rounds hold every message once, behind all that it depends on") {
  for (const std::string topology : {"ps", "ring", "allreduce"}) {
    for (const std::uint32_t nodes : {1u, 2u, 3u, 5u}) {
      for (const std::int32_t partitions : {1, 4, 7}) {
        for (const RoundLimits& limits :
             {RoundLimits{}, RoundLimits{.bytes = 5000, .messages = 2}}) {
          INFO(topology << " N = " << nodes << " K = " << partitions);
          // With 7 partitions and allreduce, no message is encoded: the all-reduce itself casts.
          const std::string form = topology == "allreduce" && partitions == 7 ? "fp16" : "raw";
          const Case made = make_case(topology, nodes, partitions, form, {1, 33, 20000, 5000});
          const std::vector<Round> rounds = derive_rounds(made.graph, limits);
          std::set<TaskId> seen;
          std::size_t tasks = 0;
          for (const Round& round : rounds) {
            CHECK((round.sends.empty() || round.reduces.empty()));
            CHECK(round.sends.size() + round.reduces.size() > 0);
            seen.insert(round.sends.begin(), round.sends.end());
            tasks += round.sends.size();
            for (const auto& reduce : round.reduces) {
              CHECK(reduce.size() == nodes);
              seen.insert(reduce.begin(), reduce.end());
              tasks += reduce.size();
            }
          }
          CHECK(tasks == count(made.graph, Kind::kSend) + count(made.graph, Kind::kAllReduce));
          CHECK(seen.size() == tasks);
          require_order(made.graph, rounds);
        }
      }
    }
  }
}

TEST_CASE("a raw ring of one gradient takes a round per hop") {
  // N partitions travel at once, one message per rank and hop: N−1 hops add, and N−1 distribute.
  constexpr std::uint32_t kNodes = 4;
  const Case made = make_case("ring", kNodes, kNodes, "raw", {128 * kNodes});
  const std::vector<Round> rounds = derive_rounds(made.graph);
  REQUIRE(rounds.size() == 2 * (kNodes - 1));
  for (const Round& round : rounds) CHECK(round.sends.size() == kNodes);
}

TEST_CASE("a round holds no more of a rank than its limits, unless one message does") {
  const Case made = make_case("ps", 4, 4, "raw", {4000, 8000, 400, 100000, 70});
  const RoundLimits limits{.bytes = 9000, .messages = 3};
  for (const Round& round : derive_rounds(made.graph, limits)) {
    std::vector<std::int64_t> bytes(8), messages(8);
    for (const TaskId id : round.sends) {
      const std::uint32_t from = made.graph[id].node, to = made.graph.peer(made.graph[id]);
      for (const std::uint32_t end : {from, 4 + to}) {
        bytes[end] += made.graph[id].amount;
        ++messages[end];
      }
    }
    for (std::size_t end = 0; end < 8; ++end) {
      CHECK(messages[end] <= limits.messages);
      CHECK((bytes[end] <= limits.bytes || messages[end] == 1));
    }
  }
}

TEST_CASE("what is ready later does not hold up what is ready sooner") {
  // The second gradient is ready one second after the first, long after all messages of the first.
  Case made = make_case("ring", 3, 3, "raw", {96, 96});
  made.model.gradients[1].ready_s = 1;
  made.graph = casync::expand_to_run(made.model, made.plan.plan);
  const std::vector<Round> rounds = derive_rounds(made.graph);
  REQUIRE(rounds.size() == 8);  // 2(N−1) for each of the two gradients
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    for (const TaskId id : rounds[r].sends) CHECK(made.graph[id].gradient == r / 4);
  }
}

TEST_CASE("an all-reduce that lacks a node has no round") {
  casync::GraphBuilder builder(2);
  builder.add({.amount = 4, .kind = Kind::kAllReduce});
  CHECK_THROWS_WITH(derive_rounds(std::move(builder).build()), Contains("not every node"));
}

TEST_CASE("a stream waits once for what it does not know, and never for itself") {
  // On rank 1 of ps with N = 2, gradient 0 is encoded, sent, received and decoded.
  const Case made = make_case("ps", 2, 1, "onebit", {64});
  const Program program(made.graph, made.model, made.plan, 1);
  FakeDevice device({});
  StreamSchedule schedule(device, program);
  const auto find = [&](Kind kind) {
    const auto tasks = program.tasks();
    return static_cast<std::uint32_t>(
        std::ranges::find_if(tasks, [&](const LocalTask& t) { return t.task.kind == kind; }) -
        tasks.begin());
  };
  const std::uint32_t encode = find(Kind::kEncode), send = find(Kind::kSend),
                      receive = find(Kind::kRecv), decode = find(Kind::kDecode);
  for (int iteration = 0; iteration < 2; ++iteration) {
    schedule.begin();
    const int before = device.waits;  // begin() makes the other streams wait for the origin
    schedule.pass(find(Kind::kBackward));
    schedule.enqueue(Stream::kOwnCodec, {&encode, 1}, [] {});
    CHECK(device.waits == before);
    schedule.enqueue(Stream::kOutbound, {&send, 1}, [] {});
    CHECK(device.waits == before + 1);  // kOutbound waits for the Encode
    schedule.enqueue(Stream::kOutbound, {&send, 1}, [] {});
    CHECK(device.waits == before + 1);  // kOutbound has waited for the Encode already
    CHECK_FALSE(schedule.follows(receive, Stream::kOutbound));
    schedule.enqueue(Stream::kInbound, {&receive, 1}, [] {});
    CHECK(schedule.follows(decode, Stream::kInbound));
    schedule.enqueue(Stream::kInbound, {&decode, 1}, [] {});
    CHECK(device.waits == before + 1);  // its predecessor is in the same stream
    while (!schedule.done()) std::this_thread::yield();
    CHECK(schedule.first_undone() == kNoIndex);
    CHECK(schedule.times(encode).timed);
    CHECK(schedule.times(encode).end_s <= schedule.times(send).end_s);
    CHECK_FALSE(schedule.times(find(Kind::kBackward)).timed);
  }
}

TEST_CASE("the arena is as large as what lies in it, and nothing overlaps") {
  // The program is rank 1's in ps with N = 2, K = 1. Rank g mod 2 is the server of gradient g.
  const Case made = make_case("ps", 2, 1, "onebit", {1000, 1000});
  const Program program(made.graph, made.model, made.plan, 1);
  const DeviceLayout layout = make_device_layout(program, DeviceTransport::kPinned);
  // 1000 · 4 bytes, rounded up to 256: 4096 each.
  CHECK(layout.units == std::vector<std::int64_t>{0, 4096});
  CHECK(layout.unit_bytes == 2 * 4096);
  CHECK(layout.messages == layout.unit_bytes);
  CHECK(layout.message_bytes == (program.arena_bytes() + 255) / 256 * 256);
  // Gradient 0's worker and gradient 1's server have a residual and a Deferred each.
  CHECK(layout.state_bytes == 2 * (4096 + 256));
  CHECK(layout.arena_bytes() == layout.state_begin + layout.state_bytes);
  CHECK(layout.device_bytes() == layout.arena_bytes() + 2 * layout.temporary_bytes);
  // Each gradient has one message out and one in, with onebit's header and 1000 bits.
  const std::int64_t message = made.plan.codecs.front()->encoded_bytes(1000);
  CHECK(layout.staging.size() == 4);
  CHECK(layout.pinned_bytes == 4 * ((message + 255) / 256 * 256));
  CHECK(std::ranges::count(layout.staging, true, &Staging::comes_in) == 2);
  CHECK(make_device_layout(program, DeviceTransport::kNccl).pinned_bytes == 0);
}

TEST_CASE("temporary memory is that of all members of a batch") {
  constexpr std::int64_t kElements = 1000;
  Case made = make_case("ps", 2, 1, "dgc", std::vector<std::int64_t>(100, kElements));
  made.plan.plan.batch.threshold_bytes = 1 << 30;
  made.graph = casync::expand_to_run(made.model, made.plan.plan);
  const Program program(made.graph, made.model, made.plan, 1);
  std::size_t largest = 0;
  for (const LocalTask& task : program.tasks()) {
    const bool codes = task.task.kind == Kind::kEncode || task.task.kind == Kind::kDecode;
    if (codes) largest = std::max(largest, 1 + program.members(task).size());
  }
  // A rank encodes 50 of the 100 gradients as a worker, in one batch, and serves the others.
  CHECK(largest >= 50);
  const Case alone = make_case("ps", 2, 1, "dgc", {kElements});
  const std::int64_t of_one =
      make_device_layout(Program(alone.graph, alone.model, alone.plan, 1), DeviceTransport::kPinned)
          .temporary_bytes;
  // The largest batch needs the temporary memory of all its members, which have the same size.
  CHECK(make_device_layout(program, DeviceTransport::kPinned).temporary_bytes ==
        static_cast<std::int64_t>(largest) * of_one);
}

TEST_CASE("a raw slice that goes to several ranks is copied to the host once") {
  // With N = 4, the server receives 3 slices of 256 bytes, and sends one copy of the mean 3 times.
  const Case made = make_case("ps", 4, 1, "raw", {64});
  const Program program(made.graph, made.model, made.plan, 0);
  REQUIRE(program.sends().size() == 3);
  const DeviceLayout layout = make_device_layout(program, DeviceTransport::kPinned);
  CHECK(layout.staging.size() == 4);
  CHECK(layout.pinned_bytes == 4 * 256);
}

TEST_CASE("too little memory is told with what is needed for what") {
  DeviceLayout layout;
  layout.unit_bytes = 100 << 20;
  layout.message_bytes = 20 << 20;
  layout.state_bytes = 30 << 20;
  layout.temporary_bytes = 5 << 20;
  CHECK_NOTHROW(require_memory(layout, 160 << 20, 200 << 20, 3));
  CHECK_THROWS_WITH(
      require_memory(layout, (160 << 20) - 1, 200 << 20, 3),
      Contains("rank 3 needs 160.0 MiB of GPU memory: gradients 100.0, messages 20.0, residuals "
               "30.0, codecs' temporary memory 10.0; 160.0 of 200.0 MiB are free"));
}
