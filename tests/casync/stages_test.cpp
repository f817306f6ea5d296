#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <set>

#include "casync/folding.hpp"
#include "casync/layout.hpp"
#include "tests/casync/fixtures.hpp"

namespace hipress::casync {
namespace {

using Catch::Matchers::Contains;

constexpr int kRank = 4;

/// An algorithm for matrices with two factors: rows · rank values, then columns · rank.
Algorithm two_factors(bool additive = true) {
  return {.name = "factors",
          .encoded_bytes = [](std::int64_t elements) { return 4 * elements; },
          .stages =
              [additive](std::span<const std::int64_t> shape) {
                return std::vector<Algorithm::Factor>{{4 * shape[0] * kRank, kRank, true},
                                                      {4 * shape[1] * kRank, kRank, additive}};
              },
          .refusal = [](std::span<const std::int64_t> shape) -> std::string {
            return shape.size() == 2 ? "" : "it is no matrix";
          }};
}

models::Model matrices(const std::vector<std::pair<std::int64_t, std::int64_t>>& shapes) {
  models::Model model;
  for (const auto& [rows, columns] : shapes) {
    const std::size_t number = model.gradients.size();
    model.gradients.push_back({.name = fmt::format("g{}", number),
                               .elements = rows * columns,
                               .ready_s = 1e-6 * static_cast<double>(number),
                               .shape = {rows, columns}});
  }
  return model;
}

Plan staged_plan(const models::Model& model, const std::string& topology, std::uint32_t nodes,
                 std::int32_t partitions) {
  Plan plan = plan_of(topology, nodes, 0, partitions, model.gradients.size());
  plan.algorithms = {two_factors()};
  return plan;
}

/// Per task, all tasks that precede it, directly or not.
std::vector<std::set<TaskId>> ancestors(const TaskGraph& graph) {
  std::vector<std::set<TaskId>> before(graph.tasks());
  for (TaskId id = 0; id < graph.tasks(); ++id) {  // ids are a topological order
    for (const TaskId next : successors(graph, id)) {
      before[next].insert(before[id].begin(), before[id].end());
      before[next].insert(id);
    }
  }
  return before;
}

TEST_CASE("each stage waits for the mean of the stage before it, and the decode for the last") {
  const std::string topology = GENERATE("ps", "ring", "allreduce");
  const std::uint32_t nodes = GENERATE(1u, 2u, 3u);
  const auto partitions = static_cast<std::int32_t>(GENERATE(1, 3));
  CAPTURE(topology, nodes, partitions);
  const models::Model model = matrices({{100, 60}});
  const TaskGraph graph = expand_to_run(model, staged_plan(model, topology, nodes, partitions));
  check(graph);
  const std::vector<std::set<TaskId>> before = ancestors(graph);
  std::vector<std::vector<TaskId>> encodes(2);
  std::vector<TaskId> decodes;
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    const Task& task = graph[id];
    if (task.kind == Kind::kEncode) encodes.at(task.stage).push_back(id);
    if (task.kind == Kind::kDecode) decodes.push_back(id);
    if (task.kind == Kind::kEncode || task.kind == Kind::kDecode) {
      CHECK(codes_factors(task));
      CHECK(task.amount == 6000);
    }
  }
  REQUIRE(encodes[0].size() == nodes);
  REQUIRE(encodes[1].size() == nodes);
  REQUIRE(decodes.size() == nodes);
  for (const TaskId second : encodes[1]) {
    for (const TaskId first : encodes[0]) CHECK(before[second].contains(first) == true);
  }
  for (const TaskId decode : decodes) {
    for (const TaskId second : encodes[1]) CHECK(before[decode].contains(second) == true);
  }
  // When the next stage begins, all tasks that read or write the factor's slices have ended.
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    const Factor* const factor = graph.factor_of(graph[id]);
    if (factor == nullptr || graph[id].kind == Kind::kJoin) continue;
    const std::vector<TaskId>& next = factor->stage == 0 ? encodes[1] : decodes;
    for (const TaskId one : next) {
      if (graph[one].node == graph[id].node && graph[id].kind != Kind::kSend) {
        CHECK(before[one].contains(id) == true);
      }
    }
  }
}

TEST_CASE("a factor holds its members' messages one after the other, and slices of one length") {
  const models::Model model = matrices({{3, 50}, {70, 5}, {41, 41}});
  Plan plan = staged_plan(model, "ring", 4, 1);
  plan.bulk_groups = {{0, 1}};
  const Layout layout = make_layout(model, plan);
  REQUIRE(layout.first_factor == 4);  // three gradients and a group
  REQUIRE(layout.units.size() == 4 + 2 * 2);
  const Unit& group = layout.units[3];
  CHECK(group.elements == 150 + 350);  // its own values are not sent, so they are not padded
  const Factor& first = layout.factors[group.first_factor - 4];
  CHECK(first == Factor{.unit = 3,
                        .stage = 0,
                        .values = (3 + 70) * kRank,
                        .elements = 500,
                        .element_ranks = 500 * kRank,
                        .value_ranks = (3 + 70) * kRank * kRank,
                        .mean_values = (3 + 70) * kRank});
  CHECK(layout.units[group.first_factor].elements == 384);  // 292, rounded up to a multiple of 32·4
  CHECK(layout.units[group.first_factor].name == "bulk0.0");
  CHECK(layout.owner(group.first_factor + 1) == 3);
  const std::vector<FactorPart> parts = factor_parts(layout, group.first_factor, model, plan);
  CHECK(parts.at(1).first == 12);
  CHECK(parts.at(1).values == 280);
  CHECK_FALSE(layout.is_group(group.first_factor));
}

TEST_CASE("simulated factors are as long as in the mean over steps, with the same tasks") {
  const std::string topology = GENERATE("ps", "ring", "allreduce");
  const models::Model model = matrices({{100, 60}, {500, 40}});
  Plan plan = staged_plan(model, topology, 4, 4);
  plan.algorithms[0].stages = [](std::span<const std::int64_t> shape) {
    const std::int64_t longest = 4 * std::max(shape[0], shape[1]) * kRank;
    return std::vector<Algorithm::Factor>{
        {longest, kRank, true, 4 * (shape[0] + shape[1]) / 2 * kRank}};
  };
  const TaskGraph runs = expand_to_run(model, plan), simulated = expand(model, plan);
  check(simulated);
  REQUIRE(runs.tasks() == simulated.tasks());
  for (TaskId id = 0; id < runs.tasks(); ++id) {
    CHECK(runs[id].kind == simulated[id].kind);
    CHECK(runs[id].node == simulated[id].node);
    if (runs.factor_of(runs[id]) == nullptr) continue;
    CHECK(runs[id].amount >= simulated[id].amount);
    // 500 · 4 values in one step, 40 · 4 in the next: 270 · 4 in the mean, rounded up to 9 · 128.
    if (runs[id].kind == Kind::kSend && runs.unit_of(runs[id]) == 1) {
      CHECK(runs[id].amount == 4 * 2048 / 4);
      CHECK(simulated[id].amount == 4 * 1152 / 4);
    }
  }
}

TEST_CASE("gradients compressed in stages are grouped by what they send") {
  const models::Model model = matrices({{1000, 1000}, {900, 1000}});
  Plan plan = staged_plan(model, "ring", 2, 1);
  plan.bulk.threshold_bytes = 40'000;  // a gradient has 3.6 or 4 MB, but sends at most 32 kB
  CHECK(make_layout(model, plan).order.size() == 1);
  plan.bulk.limit_bytes = 60'000;
  CHECK(make_layout(model, plan).order.size() == 2);
}

TEST_CASE("what cannot be compressed in stages is refused, and why") {
  models::Model model = matrices({{100, 60}, {50, 50}});
  Plan plan = staged_plan(model, "ring", 2, 2);
  const auto refused = [&](const std::string& why) {
    CHECK_THROWS_WITH(make_layout(model, plan), Contains("gradient 'g1'") && Contains(why));
  };
  model.gradients[1].shape = {};
  refused("it is no matrix");
  model.gradients[1].shape = {50, 50};
  plan.algorithms = {two_factors(false)};
  CHECK_THROWS_WITH(make_layout(model, plan), Contains("cannot be averaged as they travel"));
  plan.algorithms = {two_factors()};
  plan.gpus_per_node = 4;
  CHECK_THROWS_WITH(make_layout(model, plan),
                    Contains("one GPU per node, `nnodes` 8 with `gpus_per_node` 1"));
}

TEST_CASE("all-reduces of later stages take turns with those of the next gradients") {
  const models::Model model = matrices({{9, 9}, {8, 8}, {7, 7}});
  Plan plan = staged_plan(model, "allreduce", 2, 1);
  plan.decisions[1].algorithm = kRaw;
  const Layout layout = make_layout(model, plan);
  std::vector<std::string> names;
  for (const std::uint32_t unit : collective_order(layout))
    names.push_back(layout.units[unit].name);
  CHECK(names == std::vector<std::string>{"g0.0", "g1", "g0.1", "g2.0", "g2.1"});
  check(expand(model, plan));
}

TEST_CASE("a folded graph holds one node's share of factors and stages") {
  const std::string topology = GENERATE("ps", "ring", "allreduce");
  CAPTURE(topology);
  const models::Model model = matrices({{100, 60}, {33, 70}, {20, 20}});
  Plan plan = staged_plan(model, topology, 4, 8);
  plan.bulk_groups = {{0, 2}};
  REQUIRE(foldable(model, plan).kind == Foldability::kExact);
  const TaskGraph whole = expand(model, plan);
  const TaskGraph folded = expand(model, plan, Folding::kFolded);
  check(whole);
  check(folded);
  CHECK(whole_tasks(folded) == whole.tasks());
  CHECK(whole_tasks(model, plan) == static_cast<double>(whole.tasks()));
  plan.decisions[1].partitions = 3;
  if (topology != "allreduce") CHECK(foldable(model, plan).kind == Foldability::kImpossible);
}

TEST_CASE("stages go with batches, without pipelining, and back to back") {
  const std::string topology = GENERATE("ps", "ring", "allreduce");
  CAPTURE(topology);
  const models::Model model = matrices({{100, 60}, {33, 70}, {20, 20}});
  Plan plan = staged_plan(model, topology, 3, 3);
  const TaskGraph twice = expand_back_to_back(model, plan, 2);
  check(twice);
  // Per iteration and node, three Forward tasks, one per gradient, instead of one.
  CHECK(twice.tasks() == 2 * expand(model, plan).tasks() + 2 * 3 * (3 - 1));
  plan.batch.threshold_bytes = 1 << 20;
  const TaskGraph batched = expand(model, plan);
  check(batched);
  for (TaskId id = 0; id < batched.tasks(); ++id) {
    if (codes_factors(batched[id])) CHECK((batched[id].flags & (kLeader | kBatched)) == 0);
  }
  plan.pipelining = false;
  check(expand(model, plan));
}

}  // namespace
}  // namespace hipress::casync
