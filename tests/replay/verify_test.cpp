#include "replay/verify.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <numeric>

#include "casync/graph_builder.hpp"
#include "replay/inputs.hpp"
#include "replay/replay.hpp"
#include "runtime/operations.hpp"
#include "tests/runtime/fixtures.hpp"
#include "tests/runtime/ranks.hpp"

using namespace hipress;
using namespace hipress::replay;
using namespace hipress::runtime;
using Catch::Contains;

namespace {

std::vector<float> inputs_of(std::uint32_t node, std::size_t elements) {
  std::vector<float> values(elements);
  fill_inputs({.seed = 1, .iteration = 0, .node = node, .gradient = 0}, 0, values);
  return values;
}

/// Whole result of a gradient on a node, computed by the reference.
std::vector<float> reference_result(const Case& made, std::uint32_t node) {
  Reference reference(made.graph, made.model, made.plan, {.seed = 1});
  std::vector<float> all;
  for (std::size_t index = 0; index < reference.partitions().size(); ++index) {
    reference.run(index, 0, [&](const Reference::Block& block) {
      all.insert(all.end(), block.values[node].begin(), block.values[node].end());
    });
  }
  return all;
}

/// Error messages of all ranks of a replay in which rank `bad` decodes one element wrongly.
std::vector<std::string> replay_with_a_bad_rank(int nodes, int bad,
                                                const std::vector<std::int64_t>& sizes,
                                                std::int64_t wrong_size,
                                                std::int64_t wrong_element) {
  const Case made = make_case("ps", static_cast<std::uint32_t>(nodes), 1, "fp16", sizes);
  const auto errors = run_ranks(nodes, [&](transport::Endpoint& endpoint) {
    plans::ResolvedPlan plan = made.plan;
    if (endpoint.rank() == bad)
      plan.codecs[0] = std::make_shared<WrongCodec>(wrong_element, wrong_size);
    replay::replay(endpoint, made.model, plan, made.graph, {.progress = {}});
  });
  std::vector<std::string> messages;
  for (const auto& error : errors) messages.push_back(message_of(error));
  return messages;
}

}  // namespace

TEST_CASE("the reference of a raw ps gradient is the sum in the stated order, divided by N") {
  // In ps with N = 3 and K = 1, server 0 adds the slices of node 2 and then of node 1 to its own.
  const Case made = make_case("ps", 3, 1, "raw", {100});
  const auto a = inputs_of(0, 100), b = inputs_of(1, 100), c = inputs_of(2, 100);
  std::vector<float> expected(100);
  for (std::size_t i = 0; i < 100; ++i) expected[i] = ((a[i] + c[i]) + b[i]) / 3.0f;
  for (std::uint32_t node = 0; node < 3; ++node) CHECK(reference_result(made, node) == expected);
}

TEST_CASE("the reference of a raw ring gradient is the sum in the stated order, divided by N") {
  // In a ring with N = 3 and K = 2, partition 0 goes 0 -> 1 -> 2, and partition 1 goes 1 -> 2 -> 0.
  // Every node adds the partition that arrives to its own.
  const Case made = make_case("ring", 3, 2, "raw", {64});
  const auto a = inputs_of(0, 64), b = inputs_of(1, 64), c = inputs_of(2, 64);
  std::vector<float> expected(64);
  for (std::size_t i = 0; i < 32; ++i) expected[i] = (c[i] + (b[i] + a[i])) / 3.0f;
  for (std::size_t i = 32; i < 64; ++i) expected[i] = (a[i] + (c[i] + b[i])) / 3.0f;
  for (std::uint32_t node = 0; node < 3; ++node) CHECK(reference_result(made, node) == expected);
}

TEST_CASE("the reference of an all-reduce in half precision divides, casts and sums in halves") {
  // 20000 elements are two whole blocks of 8192 and a remainder. Sums are computed in fp32 and then
  // rounded to half precision. As fp32 has more than twice the digits, this is as if rounded once.
  for (const std::string form : {"fp16", "bf16"}) {
    CAPTURE(form);
    const Case made = make_case("allreduce", 3, 1, form, {20000});
    const auto half = [&](float value) {
      const auto codec = kernels::make_codec(form);
      std::array<std::byte, 4> message;
      encode(casync::Task{}, 1, *codec, {{&value, 1}, message, {}, {}});
      decode(casync::Task{}, 1, *codec, {{&value, 1}, message, {}, {}});
      return value;
    };
    const auto a = inputs_of(0, 20000), b = inputs_of(1, 20000), c = inputs_of(2, 20000);
    std::vector<float> expected(20000);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] = half(half(half(a[i] / 3) + half(b[i] / 3)) + half(c[i] / 3));
    }
    for (std::uint32_t node = 0; node < 3; ++node) CHECK(reference_result(made, node) == expected);
  }
}

TEST_CASE("raw partitions are run in blocks, to the same result") {
  // 20000 elements are two whole blocks of 8192 and a remainder.
  const Case made = make_case("ps", 2, 1, "raw", {20000});
  const auto a = inputs_of(0, 20000), b = inputs_of(1, 20000);
  std::vector<float> expected(20000);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = (a[i] + b[i]) / 2.0f;
  CHECK(reference_result(made, 1) == expected);
}

TEST_CASE("a partition without tasks keeps its input") {
  const Case made = make_case("ps", 1, 3, "raw", {100});
  CHECK(reference_result(made, 0) == inputs_of(0, 100));
}

TEST_CASE("references are shared out so that no rank has much more than the others") {
  // The partitions have 32, 32, 32 (96 elements, K = 3) and 64 elements (K = 1). The largest goes
  // to rank 0 and two of 32 go to rank 1. The last one then fits either, and goes to rank 0.
  const models::Model model = make_model({96, 64});
  plans::ResolvedPlan plan = make_plan(model, "ps", 2, 3, nullptr);
  plan.plan.decisions[1].partitions = 1;
  const casync::TaskGraph graph = casync::expand_to_run(model, plan.plan);
  const Reference reference(graph, model, plan, {.seed = 1});
  CHECK(share_out(cut(reference.partitions()), 2) == std::vector<int>{1, 1, 0, 0});
}

TEST_CASE("a large gradient without codecs is shared by all ranks, one with a codec is not") {
  constexpr std::int64_t kLarge = (std::int64_t{3} << 20) + 5;
  const auto cut_of = [](const std::string& topology, const std::string& algorithm) {
    const Case made = make_case(topology, 4, 1, algorithm, {7, kLarge});
    const Reference reference(made.graph, made.model, made.plan, {.seed = 1});
    return cut(reference.partitions());
  };
  for (const std::string topology : {"ps", "allreduce"}) {
    CAPTURE(topology);
    // Partition 0 has 7 elements. Partition 1 has three stretches of 2^20 elements and one of 5.
    const std::vector<Stretch> stretches = cut_of(topology, "raw");
    REQUIRE(stretches.size() == 5);
    CHECK(stretches[0].partition == 0);
    std::int64_t reached = 0;
    for (std::size_t i = 1; i < stretches.size(); ++i) {
      CHECK(stretches[i].partition == 1);
      CHECK(stretches[i].slice.begin == reached);
      reached += stretches[i].slice.elements;
    }
    CHECK(reached == kLarge);
    CHECK(share_out(stretches, 4) == std::vector<int>{3, 0, 1, 2, 3});
  }
  CHECK(cut_of("ps", "onebit").size() == 2);
  CHECK(cut_of("ps", "fp16").size() == 2);
  CHECK(cut_of("allreduce", "fp16").size() == 5);  // cut, because its casts only round
}

TEST_CASE("a wrong element is reported with its gradient, node and place, by every rank") {
  // Only g1 has 5000 elements. As the largest gradient, it is checked by rank 0. Element 4500 lies
  // in the second block of the search.
  const std::string where = "gradient 'g1', node 2, element 4500: got ";
  for (const std::string& message : replay_with_a_bad_rank(3, 2, {10, 5000, 40}, 5000, 4500)) {
    CHECK_THAT(message, Contains("does not verify after iteration 0") && Contains(where) &&
                            Contains("expected "));
  }
}

TEST_CASE("a rank that makes a wrong reference is noticed too") {
  // Rank 0 computes g1's reference, as wrong as its own result, so the other ranks' results differ.
  for (const std::string& message : replay_with_a_bad_rank(3, 0, {10, 5000, 40}, 5000, 17)) {
    CHECK_THAT(message, Contains("gradient 'g1', node 1, element 17: got "));
  }
}

TEST_CASE("a codec that is wrong on every rank alike verifies: it is what the graph says") {
  Case made = make_case("ps", 2, 1, "fp16", {100});
  made.plan.codecs[0] = std::make_shared<WrongCodec>(3, 100);
  CHECK(replay_threads("memory", made.model, made.plan, made.graph, {.progress = {}}).verified);
}

TEST_CASE("raw means beyond the bound of fp32 summation are reported") {
  // The last Merge does not divide by N, so all ranks and the reference agree on a wrong mean.
  Case made = make_case("ps", 2, 1, "raw", {10, 20});
  for (casync::TaskId id = 0; id < made.graph.tasks(); ++id) {
    casync::Task& task = made.graph[id];
    if (task.kind == casync::Kind::kMerge && task.gradient == 1) task.flags = casync::kAccumulate;
  }
  CHECK_THROWS_WITH(
      replay_threads("memory", made.model, made.plan, made.graph, {.progress = {}}),
      Contains("gradient 'g1', element 0: the reference gives") && Contains("of the mean"));
}

TEST_CASE("a graph that leaves nodes different is reported") {
  // Node 1 never receives g0's mean: its Recv and the Send are dropped from an otherwise complete
  // ps graph.
  const models::Model model = make_model({10});
  const plans::ResolvedPlan plan = make_plan(model, "ps", 2, 1, nullptr);
  casync::GraphBuilder builder(2);
  builder.name_operands();
  const std::uint32_t own = builder.slice_of({.node = 1}, 40), sum = builder.slice_of({}, 40);
  const std::uint32_t message = builder.message(0, casync::kRaw, 40);
  const casync::TaskId ready[] = {builder.add({.node = 0, .kind = casync::Kind::kBackward}),
                                  builder.add({.node = 1, .kind = casync::Kind::kBackward})};
  const casync::Task transfer{
      .amount = 40, .node = 1, .peer_offset = 1, .kind = casync::Kind::kSend};
  const casync::TaskId send = builder.add(transfer, {own, casync::kNoIndex});
  builder.edge(ready[1], send);
  const casync::TaskId recv = builder.add(
      {.amount = 40, .peer_offset = 1, .kind = casync::Kind::kRecv}, {casync::kNoIndex, message});
  builder.edge(send, recv);
  const casync::TaskId merge = builder.add(
      {.amount = 10, .peer_offset = 1, .kind = casync::Kind::kMerge, .flags = casync::kDivideSum},
      {message, sum});
  builder.edge(recv, merge);
  builder.edge(ready[0], merge);
  const casync::TaskGraph graph = std::move(builder).build();
  CHECK_THROWS_WITH(replay_threads("memory", model, plan, graph, {.progress = {}}),
                    Contains("leaves node 0 and node 1 different") && Contains("gradient 'g0'"));
}
