#include <array>
#include <catch2/catch.hpp>
#include <map>

#include "tests/casync/fixtures.hpp"

namespace hipress::casync {
namespace {

using Catch::Matchers::Contains;

constexpr std::int64_t kElements = 32 * 1000;

/// Number of tasks of each kind on each node.
std::map<Kind, std::vector<int>> count(const TaskGraph& graph) {
  std::map<Kind, std::vector<int>> counts;
  for (int kind = 0; kind < kKinds; ++kind) counts[static_cast<Kind>(kind)].resize(graph.nodes);
  for (TaskId id = 0; id < graph.tasks(); ++id) ++counts[graph[id].kind][graph[id].node];
  return counts;
}

int total(const std::vector<int>& counts) {
  int sum = 0;
  for (const int n : counts) sum += n;
  return sum;
}

TEST_CASE("compressed ps has K encodes per node, N-1+K decodes per server and K per other node") {
  for (int nodes = 2; nodes <= 7; ++nodes) {
    for (int partitions = 1; partitions <= nodes; ++partitions) {
      const TaskGraph graph = expand(model_of({kElements}), plan_of("ps", nodes, 0, partitions));
      check(graph);
      auto counts = count(graph);
      for (int node = 0; node < nodes; ++node) {
        const bool serves = node < partitions;  // node k serves partition k of gradient 0
        CHECK(counts[Kind::kEncode][node] == partitions);
        CHECK(counts[Kind::kDecode][node] == (serves ? nodes - 1 + partitions : partitions));
      }
      CHECK(total(counts[Kind::kMerge]) == 0);
      CHECK(total(counts[Kind::kSend]) == 2 * (nodes - 1) * partitions);
    }
  }
}

TEST_CASE("compressed ring has N encodes, 2N-1 decodes and 2(N-1) sends per partition") {
  for (int nodes = 1; nodes <= 7; ++nodes) {
    for (int partitions = 1; partitions <= 2 * nodes; ++partitions) {
      const TaskGraph graph = expand(model_of({kElements}), plan_of("ring", nodes, 0, partitions));
      check(graph);
      auto counts = count(graph);
      CHECK(total(counts[Kind::kEncode]) == nodes * partitions);
      CHECK(total(counts[Kind::kDecode]) == (2 * nodes - 1) * partitions);
      CHECK(total(counts[Kind::kSend]) == 2 * (nodes - 1) * partitions);
    }
  }
}

TEST_CASE("raw graphs merge instead of coding, and one node needs no communication") {
  for (const std::string topology : {"ps", "ring"}) {
    for (int nodes = 1; nodes <= 5; ++nodes) {
      const TaskGraph graph = expand(model_of({kElements}), plan_of(topology, nodes, kRaw, 3));
      check(graph);
      auto counts = count(graph);
      CHECK(total(counts[Kind::kEncode]) + total(counts[Kind::kDecode]) == 0);
      CHECK(total(counts[Kind::kMerge]) == 3 * (nodes - 1));
      CHECK(total(counts[Kind::kSend]) == 3 * 2 * (nodes - 1));
    }
  }
}

TEST_CASE("every node gets every slice of the mean, and the divisions are where they belong") {
  enum class Form { kRaw, kCoded, kHalfPrecision };
  const std::string topology = GENERATE("ps", "ring");
  const Form form = GENERATE(Form::kRaw, Form::kCoded, Form::kHalfPrecision);
  CAPTURE(topology, form);
  const bool coded = form != Form::kRaw;
  const bool divide_first = form == Form::kHalfPrecision && topology == "ring";
  const TaskGraph graph = expand(model_of({kElements}), plan_of(topology, 4, coded ? 0 : kRaw, 4, 1,
                                                                form == Form::kHalfPrecision));
  int sums = 0, own = 0, means_coded = 0, overwrites = 0;
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    const Task& task = graph[id];
    const bool divides = (task.flags & kDivideOwn) != 0;
    sums += (task.flags & kDivideSum) != 0;
    own += divides;
    means_coded += divides && task.kind == Kind::kEncode && task.role == Role::kServer;
    overwrites += task.kind == Kind::kDecode && !(task.flags & kAccumulate);
  }
  // Each partition is divided by N once: a raw sum by the last addition, an encoded one by the
  // server's Encode. In half precision, every node of a ring divides its own slice first instead.
  CHECK(sums == (coded ? 0 : 4));
  CHECK(means_coded == (coded && !divide_first ? 4 : 0));
  CHECK(own == (divide_first ? 4 * 4 : means_coded));
  CHECK(overwrites == (coded ? 4 * 4 : 0));  // every node decodes every partition of the mean
}

TEST_CASE("the server adds its own slice first, then those of ranks server-1, server-2, …") {
  const TaskGraph graph = expand(model_of({32}), plan_of("ps", 4, kRaw, 1));
  std::vector<std::uint32_t> senders;
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    if (graph[id].kind == Kind::kMerge) senders.push_back((4 - graph[id].peer_offset) % 4);
  }
  CHECK(senders == std::vector<std::uint32_t>{3, 2, 1});  // server 0; ids are in the order of sums
}

TEST_CASE("server and ring start are shifted by gradient and partition") {
  const models::Model model = model_of({64, 64, 64});
  const TaskGraph ps = expand(model, plan_of("ps", 3, 0, 2, 3));
  for (TaskId id = 0; id < ps.tasks(); ++id) {
    const Task& task = ps[id];
    if (task.kind == Kind::kEncode && task.role == Role::kServer) {
      CHECK(task.node == (task.gradient + task.partition) % 3);
    }
  }
  const TaskGraph ring = expand(model, plan_of("ring", 3, 0, 2, 3));
  for (TaskId id = 0; id < ring.tasks(); ++id) {
    const Task& task = ring[id];
    if (task.kind == Kind::kEncode && task.role == Role::kWorker) {
      CHECK(task.node == (task.gradient + task.partition) % 3);
    }
  }
}

TEST_CASE("empty partitions make no tasks") {
  // 33 elements in K = 4: slices of 32, 1, 0, 0.
  const TaskGraph graph = expand(model_of({33}), plan_of("ring", 3, kRaw, 4));
  auto counts = count(graph);
  CHECK(total(counts[Kind::kSend]) == 2 * 2 * 2);
}

TEST_CASE("ids are a topological order") {
  for (const std::string topology : {"ps", "ring"}) {
    for (const std::int8_t algorithm : {kRaw, std::int8_t{0}}) {
      const TaskGraph graph =
          expand(model_of({100, 1, 5000}), plan_of(topology, 5, algorithm, 7, 3));
      for (TaskId id = 0; id < graph.tasks(); ++id) {
        for (const TaskId next : successors(graph, id)) CHECK(id < next);
      }
    }
  }
}

TEST_CASE("backward tasks follow the ready times, not the input order, and end at them") {
  models::Model model = model_of({32, 32, 32});
  model.forward_s = 1e-3;
  model.gradients[0].ready_s = 3e-6;
  model.gradients[1].ready_s = 1e-6;
  model.gradients[2].ready_s = 3e-6;
  const TaskGraph graph = expand(model, plan_of("ps", 1, kRaw, 1, 3));
  std::vector<std::pair<std::uint32_t, std::int64_t>> chain;
  for (TaskId id = 1; id < graph.tasks(); ++id)
    chain.emplace_back(graph[id].gradient, graph[id].amount);
  CHECK(graph[0].amount == 1'000'000'000);
  CHECK(chain == std::vector<std::pair<std::uint32_t, std::int64_t>>{
                     {1, 1'000'000}, {0, 2'000'000}, {2, 0}});
}

TEST_CASE("a message's bytes are the codec's, and four an element when raw") {
  const auto bytes_of = [](const TaskGraph& graph) {
    for (TaskId id = 0; id < graph.tasks(); ++id) {
      if (graph[id].kind == Kind::kSend) return graph[id].amount;
    }
    return std::int64_t{0};
  };
  CHECK(bytes_of(expand(model_of({320}), plan_of("ps", 2, 0, 1))) == 640);
  CHECK(bytes_of(expand(model_of({320}), plan_of("ps", 2, kRaw, 1))) == 1280);
}

TEST_CASE("messages of long slices say so") {
  for (const std::string topology : {"ps", "ring"}) {
    // The first gradient's slices are just long enough, the second's are a little too short.
    const TaskGraph graph = expand(model_of({2 * kLongElements, 2 * kLongElements - 64}),
                                   plan_of(topology, 2, 0, 2, 2));
    for (TaskId id = 0; id < graph.tasks(); ++id) {
      const bool is_long = graph[id].kind == Kind::kSend && graph[id].gradient == 0;
      CHECK(((graph[id].flags & kOfLongSlice) != 0) == is_long);
    }
  }
}

TEST_CASE("impossible requests are refused") {
  CHECK_THROWS_WITH(expand(model_of({1}), plan_of("mesh", 2, kRaw, 1)),
                    Contains("unknown topology 'mesh'") && Contains("ps, ring, allreduce"));
  CHECK_THROWS_WITH(expand(model_of({1}), plan_of("ps", 0, kRaw, 1)),
                    Contains("at least one node"));
  CHECK_THROWS_WITH(expand(model_of({1}), plan_of("ps", 2, kRaw, 0)),
                    Contains("K must be at least 1"));
  CHECK_THROWS_WITH(expand(model_of({1, 2}), plan_of("ps", 2, kRaw, 1)),
                    Contains("decides 1 gradients"));
  CHECK(find_topology("RING").name == "ring");
  CHECK(expand(model_of({}), plan_of("ps", 4, kRaw, 1, 0)).tasks() == 4);  // only Forward tasks
}

}  // namespace
}  // namespace hipress::casync
