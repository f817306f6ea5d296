// Tests that two topologies that are defined and registered here are simulated, run and verified
// without changes elsewhere, and that requests which need their missing fields are refused.
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "casync/folding.hpp"
#include "casync/graph_builder.hpp"
#include "casync/partition.hpp"
#include "casync/topology.hpp"
#include "io/error.hpp"
#include "planner/baselines/baselines.hpp"
#include "planner/bound/bound.hpp"
#include "planner/problem/problem.hpp"
#include "planner/search/search.hpp"
#include "replay/replay.hpp"
#include "sim/simulator.hpp"
#include "tests/runtime/fixtures.hpp"

using namespace hipress;
using casync::PartitionTasks;
using casync::Role;
using casync::TaskId;
using Catch::Contains;

namespace {

// ------------------------------------------------------------------ the mean, by a binomial tree

/// Averages by a tree. In round d = 1, 2, 4 …, node i + d sends its sum to node i, for every
/// multiple i of 2d. The mean goes back the same way.
void expand_tree(casync::GraphBuilder& builder, const casync::UnitWork& work) {
  const std::uint32_t nodes = builder.nodes();
  for (std::int32_t k = 0; k < work.partitions; ++k) {
    PartitionTasks tasks(builder, work, k);
    if (tasks.empty()) break;
    std::vector<TaskId> sum = work.ready;
    std::uint32_t top = 1;
    for (std::uint32_t d = 1; d < nodes; top = d, d *= 2) {
      const bool last = 2 * d >= nodes;
      for (std::uint32_t parent = 0; parent + d < nodes; parent += 2 * d) {
        const std::uint32_t child = parent + d;
        TaskId message = sum[child];
        if (tasks.compressed()) {
          const Role role = d == 1 ? Role::kWorker : Role::kHop;
          message = tasks.encode(child, role, nodes - d, message);
        }
        const TaskId arrival =
            tasks.transfer(child, parent, message, PartitionTasks::Lands::kInMessage);
        const casync::TaskFlags flags =
            last && !tasks.compressed() ? casync::kDivideSum : casync::kNoFlags;
        sum[parent] = tasks.add(parent, arrival, sum[parent], nodes - d, flags);
      }
    }
    std::vector<TaskId> mean = sum;
    if (tasks.compressed()) {
      mean[0] = tasks.encode(0, Role::kServer, 0, sum[0], casync::kDivideOwn);
    }
    for (std::uint32_t d = top; d >= 1 && nodes > 1; d /= 2) {
      for (std::uint32_t parent = 0; parent + d < nodes; parent += 2 * d) {
        mean[parent + d] =
            tasks.transfer(parent, parent + d, mean[parent], PartitionTasks::Lands::kInSlice);
      }
    }
    for (std::uint32_t node = 0; tasks.compressed() && node < nodes; ++node) {
      tasks.decode(node, mean[node], 0);
    }
  }
}

double tree_tasks(double nodes, bool compressed) {
  return 5 * (nodes - 1) + (compressed ? 2 * nodes : 0);
}

const casync::Topology kTree = {.name = "tree",
                                .help = "a binomial tree to node 0 and back",
                                .expand = expand_tree,
                                .tasks_per_partition = tree_tasks};

// -------------------------------------------------------- a broadcast, from the root to all others

void expand_linear(casync::GraphBuilder& builder, const casync::UnitWork& work) {
  const std::uint32_t nodes = builder.nodes();
  for (std::int32_t k = 0; k < work.partitions; ++k) {
    PartitionTasks tasks(builder, work, k);
    if (tasks.empty()) break;
    TaskId message = work.ready[work.root];
    if (tasks.compressed()) message = tasks.encode(work.root, Role::kWorker, 0, message);
    for (std::uint32_t distance = 1; distance < nodes; ++distance) {
      const std::uint32_t to = tasks.node(std::int64_t{work.root} + distance);
      const TaskId arrival =
          tasks.transfer(work.root, to, message, PartitionTasks::Lands::kInSlice);
      builder.edge(work.ready[to], arrival);
      if (tasks.compressed()) tasks.decode(to, arrival, distance);
    }
    if (tasks.compressed()) tasks.decode(work.root, message, 0);
  }
}

double linear_tasks(double nodes, bool compressed) {
  return 2 * (nodes - 1) + (compressed ? 1 + nodes : 0);
}

const casync::Topology kLinear = {.name = "linear",
                                  .help = "from the root to one node after the other",
                                  .expand = expand_linear,
                                  .tasks_per_partition = linear_tasks,
                                  .operation = casync::Operation::kBroadcast};

struct Registered {
  casync::TopologyRegistration tree{kTree}, linear{kLinear};
};

// Costs of 1 us + bytes / (1 GB/s) per message; all other tasks are free.
costs::Profile simple_profile() {
  costs::Profile profile;
  profile.link = {.overhead_s = 1e-6, .bandwidth = 1e9, .bandwidth_both_ways = 1e9};
  return profile;
}

std::int64_t simulated_ps(const runtime::Case& made) {
  const costs::Profile profile = simple_profile();
  const std::uint32_t nodes = made.plan.plan.nodes;
  return sim::simulate(made.graph, sim::TaskCosts(profile, made.plan.plan.algorithms),
                       costs::cluster_from_profile(profile, nodes),
                       {.network = sim::Network::kPort})
      .iteration.count();
}

replay::ReplayResult run(const runtime::Case& made) {
  return replay::replay_threads("memory", made.model, made.plan, made.graph,
                                {.iterations = 2, .progress = {}});
}

}  // namespace

TEST_CASE("topologies are known while they are registered") {
  CHECK_THROWS_WITH(casync::find_topology("tree"), Contains("unknown topology 'tree'"));
  CHECK_THROWS_WITH(casync::find_topology("RNG"), Contains("'RNG'; did you mean 'ring'?"));
  {
    const Registered registered;
    CHECK(&casync::find_topology("TREE") == &kTree);
    CHECK(casync::topology_names(casync::Operation::kMean) ==
          "ps, ring, allreduce, allgather, tree");
    CHECK(casync::topology_names(casync::Operation::kBroadcast) ==
          "chain, binomial, scatter_allgather, linear");
    CHECK_THROWS_WITH(casync::TopologyRegistration(kTree), Contains("is a topology 'tree'"));
  }
  CHECK(casync::topology_names(casync::Operation::kMean) == "ps, ring, allreduce, allgather");
}

TEST_CASE("a tree of one's own is simulated in the time that it takes") {
  const Registered registered;
  // 128 elements are 512 bytes, so a message takes m = 1.512 us. With N = 4, nodes 1 and 3 send at
  // once, then node 2: 2m. On the way back, node 0 sends to 1 and then to 2, since smaller offsets
  // go first, and node 2 to 3: 3m.
  CHECK(simulated_ps(runtime::make_case("tree", 4, 1, "raw", {128})) == 5 * 1512000);
  // With N = 3, all four messages use node 0's ports: from 1, from 2, to 1, to 2.
  CHECK(simulated_ps(runtime::make_case("tree", 3, 1, "raw", {128})) == 4 * 1512000);
}

TEST_CASE("a broadcast of one's own is simulated in the time that it takes") {
  const Registered registered;
  CHECK(simulated_ps(runtime::make_case("linear", 4, 1, "raw", {128})) == 3 * 1512000);
}

TEST_CASE("topologies of one's own are run and verified, and have as many tasks as they say",
          "[slow]") {
  const Registered registered;
  const std::string topology = GENERATE("tree", "linear");
  const std::uint32_t nodes = GENERATE(1u, 2u, 3u, 5u, 8u);
  const std::int32_t partitions = GENERATE(1, 3);
  const std::string algorithm = GENERATE("raw", "fp16", "onebit");
  CAPTURE(topology, nodes, partitions, algorithm);
  const runtime::Case made = runtime::make_case(topology, nodes, partitions, algorithm, {100, 7});
  casync::check(made.graph);
  CHECK(run(made).verified);
  CHECK(casync::whole_tasks(made.model, made.plan.plan) == made.graph.tasks());
}

TEST_CASE("a broadcast spreads what its root has") {
  const Registered registered;
  runtime::Case made = runtime::make_case("linear", 3, 2, "raw", {100});
  made.plan.plan.root = 2;
  SECTION("and verifies") {
    made.graph = casync::expand_to_run(made.model, made.plan.plan);
    CHECK(run(made).verified);
  }
  SECTION("and another root's values do not pass for it") {
    CHECK_THROWS_WITH(run(made),
                      Contains("gradient 'g0', element 0") && Contains("node 2 broadcasts"));
  }
  SECTION("and the root is one of the nodes") {
    made.plan.plan.root = 3;
    CHECK_THROWS_WITH(casync::expand(made.model, made.plan.plan),
                      Contains("root 3 is not one of the plan's 3 nodes"));
  }
}

TEST_CASE("what does not look the same from every node is not folded") {
  const Registered registered;
  const runtime::Case made = runtime::make_case("tree", 4, 4, "raw", {4096});
  const casync::Foldability verdict = casync::foldable(made.model, made.plan.plan);
  CHECK(verdict.kind == casync::Foldability::kImpossible);
  CHECK(verdict.why == "gradient 'g0' goes by tree, which does not look the same from every node");
  CHECK_THROWS_WITH(casync::expand(made.model, made.plan.plan, casync::Folding::kFolded),
                    Contains("cannot be folded"));
}

TEST_CASE("plans of a topology of one's own are searched by exact simulations, without a bound") {
  const Registered registered;
  const models::Model model = runtime::make_model({100000, 2000000, 64});
  const costs::Profile profile = simple_profile();
  const planner::Machines machines = {.profile = profile,
                                      .cluster = costs::cluster_from_profile(profile, 4),
                                      .network = sim::Network::kPort};
  planner::Problem problem = {
      .model = model, .topology = "tree", .nodes = 4, .algorithms = {}, .machines = &machines};
  problem.limits.evaluations = 200;
  const planner::SearchResult found = planner::find_search("timeline").search(problem);
  CHECK(found.plan.topology == "tree");
  const planner::Choices choices = planner::make_choices(problem);
  CHECK(planner::topology_without_bound(choices) == &kTree);
  CHECK_THROWS_AS(planner::lower_bound(model, machines, choices), io::InputError);

  // SeCoPa has no formulas for the tree; baselines that need none have times.
  problem.topology = "tree";
  problem.algorithms = {"onebit"};
  const costs::Profile measured = costs::read_profile("v100-100g");
  const planner::Machines real = {.profile = measured,
                                  .cluster = costs::cluster_from_profile(measured, 4),
                                  .network = sim::Network::kPort};
  problem.machines = &real;
  const std::vector<planner::Baseline> all = planner::simulate_baselines(problem, real);
  const auto named = [&](std::string_view name) {
    const auto one = std::ranges::find(all, name, &planner::Baseline::name);
    REQUIRE(one != all.end());
    return *one;
  };
  CHECK(named("secopa").diagnostic == "SeCoPa has no formulas for tree");
  CHECK_FALSE(named("secopa_grouped").iteration_s);
  CHECK(named("none").iteration_s);
  CHECK(named("all").plan.topology == "tree");
  const planner::SearchResult compressed = planner::find_search("timeline").search(problem);
  CHECK(compressed.plan.topology == "tree");

  // Broadcasts do not average, so they are left out.
  problem.topology = "best";
  CHECK(planner::topologies_of(problem) == std::vector<std::string>{"ps", "ring", "tree"});
}
