#include "casync/rewrites.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "casync/folding.hpp"
#include "tests/casync/fixtures.hpp"

namespace hipress::casync {
namespace {

int count(const TaskGraph& graph, Kind kind, std::uint8_t flag = 0) {
  int tasks = 0;
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    tasks += graph[id].kind == kind && (graph[id].flags & flag) == flag;
  }
  return tasks;
}

std::vector<std::vector<TaskId>> predecessors(const TaskGraph& graph) {
  std::vector<std::vector<TaskId>> before(graph.tasks());
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    for (const TaskId next : successors(graph, id)) before[next].push_back(id);
  }
  return before;
}

TEST_CASE("a bulk group is synchronised as one gradient with K = N") {
  // Six gradients of 10 elements have 60, padded to 32·4 = 128: four slices of 32.
  Plan plan = plan_of("ring", 4, 0, 1, 6);
  plan.bulk.threshold_bytes = 1000;
  const TaskGraph graph = expand(model_of({10, 10, 10, 10, 10, 10}), plan);
  check(graph);
  CHECK(count(graph, Kind::kBackward) == 6 * 4);
  CHECK(count(graph, Kind::kJoin) == 4);  // one per node, which waits for all members
  CHECK(count(graph, Kind::kEncode) == 4 * 4);
  CHECK(count(graph, Kind::kSend) == 4 * 2 * 3);
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    if (graph[id].kind == Kind::kEncode) CHECK(graph[id].amount == 32);
    if (graph[id].kind == Kind::kSend) CHECK(graph[id].gradient == 6);
  }
  const auto before = predecessors(graph);
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    if (graph[id].kind != Kind::kJoin) continue;
    CHECK(before[id].size() == 6);
    CHECK(describe(graph, id) == fmt::format("Join bulk0[0] on node {}", graph[id].node));
  }
}

TEST_CASE("an all-reduce is one task per node that starts when the last node is ready") {
  for (const std::uint32_t nodes : {2, 3, 5}) {
    const TaskGraph graph = expand(model_of({100, 7}), plan_of("allreduce", nodes, kRaw, 9, 2));
    check(graph);
    CHECK(count(graph, Kind::kAllReduce) == 2 * static_cast<int>(nodes));
    CHECK(count(graph, Kind::kSend) == 0);
    const auto before = predecessors(graph);
    for (TaskId id = 0; id < graph.tasks(); ++id) {
      if (graph[id].kind == Kind::kJoin) CHECK(before[id].size() == nodes);
      if (graph[id].kind == Kind::kAllReduce) {
        CHECK(graph[id].amount == (graph[id].gradient == 0 ? 400 : 28));
      }
    }
  }
  CHECK(count(expand(model_of({100}), plan_of("allreduce", 1, kRaw, 1)), Kind::kAllReduce) == 0);
}

TEST_CASE("an all-reduce in half precision is one task that casts, and sends half of the bytes") {
  const TaskGraph raw = expand(model_of({100, 7}), plan_of("allreduce", 4, kRaw, 9, 2));
  const TaskGraph half = expand(model_of({100, 7}), plan_of("allreduce", 4, 0, 9, 2, true));
  check(half);
  REQUIRE(half.tasks() == raw.tasks());
  for (TaskId id = 0; id < half.tasks(); ++id) {
    CHECK(half[id].kind == raw[id].kind);
    if (half[id].kind != Kind::kAllReduce) continue;
    CHECK(casts(half[id]));
    CHECK_FALSE(casts(raw[id]));
    CHECK(2 * half[id].amount == raw[id].amount);
    CHECK(half[id].flags == kDivideOwn);  // divided first, so that no sum overflows
    // 2(N-1)/N · 200 and 2(N-1)/N · 14 bytes.
    CHECK(bytes_sent(half, half[id]) == (half[id].gradient == 0 ? 300 : 21));
    CHECK(cast_of(half[id], Kind::kEncode).amount == (half[id].gradient == 0 ? 100 : 7));
    CHECK_FALSE(encodes_quotients(cast_of(half[id], Kind::kEncode), 4));
    CHECK(encodes_quotients(cast_of(half[id], Kind::kEncode), 3));
  }
}

TEST_CASE("all nodes run all-reduces in the order of backward, whatever the input order") {
  models::Model model = model_of({10, 20, 30});
  model.gradients[0].ready_s = 3e-6;
  model.gradients[1].ready_s = 1e-6;
  model.gradients[2].ready_s = 2e-6;
  const TaskGraph graph = expand(model, plan_of("allreduce", 3, kRaw, 1, 3));
  check(graph);
  const std::map<std::uint32_t, std::uint32_t> next{{1, 2}, {2, 0}};
  int chained = 0;
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    for (const TaskId after : successors(graph, id)) {
      CHECK(id < after);
      if (graph[id].kind != Kind::kAllReduce || graph[after].kind != Kind::kAllReduce) continue;
      CHECK(next.at(graph[id].gradient) == graph[after].gradient);
      CHECK(graph[id].node == graph[after].node);
      ++chained;
    }
  }
  CHECK(chained == 2 * 3);
}

TEST_CASE("an all-reduce that a node does not take part in is refused") {
  GraphBuilder builder(2);
  builder.add({.amount = 8, .peer_offset = 1, .kind = Kind::kAllReduce});
  CHECK_THROWS_WITH(check(std::move(builder).build()),
                    Catch::Contains("AllReduce g0[0] on node 0") && Catch::Contains("node 1"));
  GraphBuilder other(2);
  other.add({.amount = 8, .peer_offset = 1, .kind = Kind::kAllReduce});
  other.add({.amount = 4, .node = 1, .peer_offset = 1, .kind = Kind::kAllReduce});
  CHECK_THROWS_WITH(check(std::move(other).build()), Catch::Contains("of 4 bytes"));
  GraphBuilder mixed(2);
  mixed.add({.amount = 8, .peer_offset = 1, .kind = Kind::kAllReduce});
  mixed.add({.amount = 8, .node = 1, .peer_offset = 1, .kind = Kind::kAllReduce, .algorithm = 0});
  CHECK_THROWS_WITH(check(std::move(mixed).build()), Catch::Contains("of another algorithm"));
}

TEST_CASE("gradients that are ready at once share launches, depth by depth") {
  // On a ring with N = K = 3, a node handles one slice of each of the two gradients at every depth,
  // in one launch. A gradient takes N = 3 encodes and 2N-1 = 5 decodes per node. So a node has 3
  // and 5 launches instead of 6 and 10.
  Plan plan = plan_of("ring", 3, 0, 3, 2);
  plan.batch.threshold_bytes = 1 << 20;
  const TaskGraph graph = expand(model_of({960, 960}), plan);
  check(graph);
  CHECK(count(graph, Kind::kEncode) == 3 * 6);
  CHECK(count(graph, Kind::kEncode, kLeader) == 3 * 3);
  CHECK(count(graph, Kind::kEncode, kBatched) == 3 * 3);
  CHECK(count(graph, Kind::kDecode, kBatched) == 3 * 5);
}

TEST_CASE("what is large, late or too much keeps its own launch") {
  models::Model model = model_of({960, 960, 96000});
  model.gradients[1].ready_s = 1e-3;
  Plan plan = plan_of("ring", 3, 0, 3, 3);
  plan.batch = {.threshold_bytes = 4 * 320 + 1, .wait = Picoseconds(1'000'000'000)};
  CHECK(count(expand(model, plan), Kind::kEncode, kLeader) == 3 * 3);
  SECTION("large") { plan.batch.threshold_bytes = 4 * 320; }
  SECTION("late") { plan.batch.wait = Picoseconds(999'999'999); }
  SECTION("too much") { plan.batch.limit_bytes = 2 * 4 * 320 - 1; }
  CHECK(count(expand(model, plan), Kind::kEncode, kLeader) == 0);
}

TEST_CASE("a leader has the work of its batch and waits for what its members wait for") {
  Plan plan = plan_of("ps", 4, 0, 4, 5);
  const models::Model model = model_of({960, 1, 5000, 64, 320});
  const TaskGraph plain = expand(model, plan);
  plan.batch.threshold_bytes = 1 << 20;
  const TaskGraph graph = expand(model, plan);
  check(graph);
  CHECK(graph.tasks() == plain.tasks());
  const auto before = predecessors(graph);
  std::map<std::pair<Kind, std::uint32_t>, std::int64_t> work, expected;
  for (TaskId id = 0; id < plain.tasks(); ++id) {
    if (plain[id].kind == Kind::kEncode || plain[id].kind == Kind::kDecode) {
      expected[{plain[id].kind, plain[id].node}] += plain[id].amount;
    }
  }
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    const Task& task = graph[id];
    const bool codec = task.kind == Kind::kEncode || task.kind == Kind::kDecode;
    if (!codec) continue;
    if ((task.flags & kBatched) == 0) {
      work[{task.kind, task.node}] += task.amount;
      continue;
    }
    std::vector<TaskId> leaders, others;
    for (const TaskId earlier : before[id]) {
      const bool leads =
          (graph[earlier].flags & kLeader) != 0 && graph[earlier].kind == task.kind &&
          (graph[earlier].gradient != task.gradient || graph[earlier].partition != task.partition);
      (leads ? leaders : others).push_back(earlier);
    }
    REQUIRE(leaders.size() == 1);
    const std::set<TaskId> of_leader(before[leaders[0]].begin(), before[leaders[0]].end());
    for (const TaskId earlier : others) CHECK(of_leader.contains(earlier));
  }
  CHECK(work == expected);
}

TEST_CASE("without pipelining no step of a node starts before the step before it is over") {
  // Two compressed gradients on a ring with N = K = 3. On every node, each of a gradient's N = 3
  // encodes, 2(N-1) = 4 sends … is a phase. The second gradient follows the first.
  Plan plan = plan_of("ring", 3, 0, 3, 2);
  plan.pipelining = false;
  const TaskGraph graph = expand(model_of({960, 960}), plan);
  check(graph);
  // Tasks that can be reached from each task.
  std::vector<std::set<TaskId>> after(graph.tasks());
  for (TaskId id = graph.tasks(); id-- > 0;) {
    for (const TaskId next : successors(graph, id)) {
      after[id].insert(next);
      after[id].insert(after[next].begin(), after[next].end());
    }
  }
  for (TaskId a = 0; a < graph.tasks(); ++a) {
    for (TaskId b = 0; b < graph.tasks(); ++b) {
      if (graph[a].node != graph[b].node || is_computation(graph[a])) continue;
      if (is_computation(graph[b]) || graph[b].kind == Kind::kRecv) continue;
      if (graph[a].gradient == 0 && graph[b].gradient == 1) CHECK(after[a].contains(b));
    }
  }
  // An encode or decode waits for each send of its node, or the send waits for it.
  for (TaskId a = 0; a < graph.tasks(); ++a) {
    for (TaskId b = 0; b < graph.tasks(); ++b) {
      const bool codes = graph[a].kind == Kind::kEncode || graph[a].kind == Kind::kDecode;
      if (graph[a].node != graph[b].node || !codes) continue;
      if (graph[b].kind == Kind::kSend) CHECK((after[a].contains(b) || after[b].contains(a)));
    }
  }
}

TEST_CASE("back to back, forward is split by backward times and waits for its gradient") {
  models::Model model = model_of({100, 300});
  model.forward_s = 1e-6;
  model.gradients[0].ready_s = 1e-6;
  model.gradients[1].ready_s = 4e-6;  // 3 of 4 us of backward, so three quarters of forward
  const Plan plan = plan_of("ring", 2, kRaw, 2, 2);
  const TaskGraph graph = expand_back_to_back(model, plan, 2);
  check(graph);
  const auto before = predecessors(graph);
  std::vector<std::pair<std::uint32_t, std::int64_t>> forward;
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    if (graph[id].kind != Kind::kForward || graph[id].node != 0) continue;
    forward.emplace_back(graph[id].gradient, graph[id].amount);
    const bool again = forward.size() > 2;
    bool waits = false;
    for (const TaskId earlier : before[id]) {
      waits |= !is_computation(graph[earlier]) && graph[earlier].gradient == graph[id].gradient;
    }
    CHECK(waits == again);
  }
  using Steps = std::vector<std::pair<std::uint32_t, std::int64_t>>;
  CHECK(forward == Steps{{1, 750'000}, {0, 250'000}, {1, 750'000}, {0, 250'000}});
  CHECK(graph.tasks() == 2 * expand(model, plan).tasks() + 2 * 2);  // one more Forward each

  model.gradients[0].ready_s = model.gradients[1].ready_s = 0;  // forward is then split by elements
  const TaskGraph untimed = expand_back_to_back(model, plan, 1);
  CHECK(untimed[0].amount == 750'000);
  // with_even_slices() leaves no elements of gradients that are smaller than K slices.
  model.gradients[0].elements = model.gradients[1].elements = 0;
  const TaskGraph without_elements = expand_back_to_back(model, plan, 1);
  CHECK(without_elements[0].amount == 500'000);
  CHECK(without_elements[1].amount == 500'000);
  CHECK_THROWS(expand_back_to_back(model, plan, 0));
}

/// Draws a model and a plan: sizes, ready times, decisions, options.
std::pair<models::Model, Plan> random_plan(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  models::Model model;
  const std::uint32_t gradients = below(9);
  for (std::uint32_t g = 0; g < gradients; ++g) {
    const std::uint32_t most = below(2) == 0 ? 100 : 5000;
    const std::int64_t elements = std::int64_t{below(most)} + 1;
    model.gradients.push_back(
        {.name = fmt::format("g{}", g), .elements = elements, .ready_s = 1e-6 * below(20)});
  }
  model.forward_s = 1e-6 * below(10);
  Plan plan = plan_of(below(2) == 0 ? "ps" : "ring", 1 + below(6), 0, 1, gradients);
  for (Decision& decision : plan.decisions) {
    decision.partitions = 1 + static_cast<std::int32_t>(below(8));
    if (below(3) == 0) decision.algorithm = kRaw;
  }
  const auto maybe_wait = [&](Aggregation& aggregation) {
    if (below(2) == 0) aggregation.wait = Picoseconds(1'000'000 * below(20));
    if (below(2) == 0) aggregation.limit_bytes = below(20000);
  };
  plan.bulk.threshold_bytes = below(2) * below(10000);
  plan.batch.threshold_bytes = below(2) * below(20000);
  maybe_wait(plan.bulk);
  maybe_wait(plan.batch);
  if (below(2) == 0) plan.raw_topology = "allreduce";
  plan.pipelining = below(2) == 0;
  if (below(4) == 0) {
    plan.topology = "allreduce";
    plan.algorithms = {half_bytes(true)};
  }
  return {model, plan};
}

TEST_CASE("graphs of random plans with all options are sound, and ids a topological order") {
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    INFO("seed " << seed);
    const auto [model, plan] = random_plan(seed);
    for (const int iterations : {1, 3}) {
      const TaskGraph graph =
          iterations == 1 ? expand(model, plan) : expand_back_to_back(model, plan, iterations);
      REQUIRE_NOTHROW(check(graph));
      bool sorted = true;
      for (TaskId id = 0; id < graph.tasks(); ++id) {
        for (const TaskId next : successors(graph, id)) sorted &= id < next;
      }
      CHECK(sorted);
    }
  }
}

TEST_CASE("the tasks of a graph are counted before it is made") {
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    INFO("seed " << seed);
    auto [model, plan] = random_plan(seed);
    plan.pipelining = true;
    plan.gpus_per_node = 1 + seed % 2;
    CHECK(whole_tasks(model, plan) == expand(model, plan).tasks());
    for (Decision& decision : plan.decisions) decision.algorithm = kRaw;
    plan.topology = "allreduce";
    CHECK(whole_tasks(model, plan) == expand(model, plan).tasks());
  }
  // kMaxElements elements in 2^20 slices on N = 2^20 nodes. A slice has 5(N-1) + 2N tasks, about
  // 7 · 2^20.
  models::Model huge = model_of({models::kMaxElements});
  CHECK(whole_tasks(huge, plan_of("ring", 1 << 20, 0, 1 << 20)) ==
        Approx(7 * 0x1p40).epsilon(1e-5));
}

TEST_CASE("sorting names the tasks of a cycle") {
  GraphBuilder builder(1);
  const TaskId a = builder.add({.kind = Kind::kEncode});
  const TaskId b = builder.add({.kind = Kind::kDecode});
  builder.edge(a, b);
  builder.edge(b, a);
  CHECK_THROWS_WITH(builder.sort(), Catch::Contains("cycle: ") && Catch::Contains("Encode g0[0]"));
}

}  // namespace
}  // namespace hipress::casync
