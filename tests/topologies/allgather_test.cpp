// Tests of topology allgather: simulated times equal the formula that docs/sparse.md derives,
// replays on real threads are verified, and the planner uses it for sparse gradients.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "casync/folding.hpp"
#include "casync/layout.hpp"
#include "casync/topology.hpp"
#include "costs/cluster.hpp"
#include "costs/profile.hpp"
#include "planner/analysis/break_even_density.hpp"
#include "planner/bound/bound.hpp"
#include "planner/choices/choices.hpp"
#include "planner/search/timeline_search.hpp"
#include "replay/replay.hpp"
#include "runtime/dataflow.hpp"
#include "sim/simulator.hpp"
#include "tests/runtime/fixtures.hpp"

using namespace hipress;
using Catch::Contains;

namespace {

/// Costs: a message takes 2 us + bytes / (1 GB/s) on the port and 5 us of latency. An element takes
/// 3 ps to encode, 2 ps to decode, and 1 ps to add.
costs::Profile profile() {
  costs::Profile profile;
  profile.link = {
      .overhead_s = 2e-6, .bandwidth = 1e9, .bandwidth_both_ways = 1e9, .latency_s = 5e-6};
  const auto per_element = [](double ps) { return costs::Curve{{{.b_s = ps * 1e-12}}}; };
  profile.codecs["half"] = profile.codecs["dgc(rho=0.01)"] = {
      .encode = per_element(3), .decode = per_element(2), .decode_add = per_element(1)};
  profile.codecs["fp16"] = profile.codecs["half"];
  profile.merge = per_element(1);
  return profile;
}

casync::Plan plan_of(std::uint32_t nodes, std::int32_t partitions) {
  casync::Plan plan;
  plan.topology = "allgather";
  plan.nodes = nodes;
  plan.algorithms = {
      {.name = "half", .encoded_bytes = [](std::int64_t elements) { return 2 * elements; }}};
  plan.decisions = {{0, partitions}};
  return plan;
}

std::int64_t simulated_ps(const casync::Plan& plan, std::int64_t elements,
                          casync::Folding folding = casync::Folding::kNone) {
  const models::Model model = runtime::make_model({elements});
  const costs::Profile costs = profile();
  return sim::simulate(casync::expand(model, plan, folding), sim::TaskCosts(costs, plan.algorithms),
                       costs::cluster_from_profile(costs, plan.nodes),
                       {.network = sim::Network::kPort})
      .iteration.count();
}

}  // namespace

TEST_CASE("an all-gather takes t_e + (N-1) t_s + L + t_d + (N-1) t_a") {
  const std::int64_t elements = 6400, t_s = 2'000'000 + 2 * elements * 1000, latency = 5'000'000;
  for (const int nodes : {2, 3, 4, 8}) {
    CAPTURE(nodes);
    const std::int64_t expected =
        3 * elements + (nodes - 1) * t_s + latency + 2 * elements + (nodes - 1) * elements;
    CHECK(simulated_ps(plan_of(nodes, 1), elements) == expected);
  }
  CHECK(simulated_ps(plan_of(1, 1), elements) == 5 * elements);  // nothing is sent
}

TEST_CASE("a folded all-gather takes as long as all of it") {
  for (const int nodes : {2, 3, 4}) {
    const casync::Plan plan = plan_of(nodes, 2 * nodes);
    const std::int64_t elements = 32 * 2 * nodes * 10;
    CHECK(simulated_ps(plan, elements, casync::Folding::kFolded) == simulated_ps(plan, elements));
    const models::Model model = runtime::make_model({elements});
    const casync::TaskGraph graph = casync::expand(model, plan);
    casync::check(graph);
    CHECK(casync::whole_tasks(model, plan) == graph.tasks());
    CHECK(casync::whole_tasks(casync::expand(model, plan, casync::Folding::kFolded)) ==
          graph.tasks());
  }
}

TEST_CASE("an all-gather is run, and every node ends with the same sum in the order of ranks",
          "[slow]") {
  const std::uint32_t nodes = GENERATE(1u, 2u, 3u, 5u);
  const std::int32_t partitions = GENERATE(1, 3, 10);
  const std::string algorithm =
      GENERATE("raw", "fp16", "onebit", "terngrad", "dgc", "graddrop", "int8block");
  CAPTURE(nodes, partitions, algorithm);
  const runtime::Case made =
      runtime::make_case("allgather", nodes, partitions, algorithm, {600, 7, 3000});
  casync::check(made.graph);
  const replay::ReplayResult result = replay::replay_threads(
      "memory", made.model, made.plan, made.graph, {.iterations = 3, .progress = {}});
  CHECK(result.verified);
  CHECK(casync::whole_tasks(made.model, made.plan.plan) == made.graph.tasks());
}

TEST_CASE("an all-gather of batched launches and bulk groups is run and verified") {
  runtime::Case made = runtime::make_case("allgather", 3, 2, "dgc", {600, 7, 3000, 64});
  made.plan.plan.bulk.threshold_bytes = 4000;
  made.plan.plan.batch.threshold_bytes = 1 << 20;
  made.graph = casync::expand_to_run(made.model, made.plan.plan);
  CHECK(replay::replay_threads("memory", made.model, made.plan, made.graph,
                               {.iterations = 3, .progress = {}})
            .verified);
}

TEST_CASE("several GPUs of a node sum their gradients before an all-gather, and share its result") {
  // A LocalReduce or LocalBroadcast of S = 25600 bytes over G = 4 GPUs takes 3 us + 3/4 * S/(10
  // GB/s). A codec works on a GPU's quarter of the elements. Messages are as long as with one GPU.
  const std::int64_t elements = 6400, local = 3'000'000 + 3 * 25600 * 100 / 4;
  casync::Plan plan = plan_of(3, 1);
  plan.gpus_per_node = 4;
  const models::Model model = runtime::make_model({elements});
  const costs::Profile costs = profile();
  costs::Cluster cluster = costs::cluster_from_profile(costs, 3);
  cluster.gpus_per_node = 4;
  cluster.gpu_link = {.overhead_s = 1e-6, .bandwidth = 10e9};
  const casync::TaskGraph graph = casync::expand(model, plan);
  const std::int64_t share = elements / 4, t_s = 2'000'000 + 2 * elements * 1000;
  CHECK(sim::simulate(graph, sim::TaskCosts(costs, plan.algorithms), cluster,
                      {.network = sim::Network::kPort})
            .iteration.count() ==
        2 * local + 3 * share + 2 * t_s + 5'000'000 + 2 * share + 2 * share);
  CHECK(casync::whole_tasks(model, plan) == graph.tasks());
}

TEST_CASE("beside an all-gather, raw gradients and those in half precision go by a ring") {
  const models::Model model = runtime::make_model({640, 640, 640});
  casync::Plan plan = plan_of(3, 3);
  plan.algorithms.push_back({.name = "fp16",
                             .encoded_bytes = [](std::int64_t elements) { return 2 * elements; },
                             .half_precision = true});
  plan.decisions = {{0, 3}, {1, 3}, {casync::kRaw, 3}};
  const auto names = [&] {
    std::vector<std::string> found;
    for (const casync::Unit& unit : casync::make_layout(model, plan).units) {
      found.emplace_back(unit.topology->name);
    }
    return found;
  };
  CHECK(names() == std::vector<std::string>{"allgather", "ring", "ring"});
  plan.raw_topology = "ps";
  CHECK(names() == std::vector<std::string>{"allgather", "ps", "ps"});
  plan.raw_topology = "allgather";
  CHECK_THROWS_WITH(casync::make_layout(model, plan),
                    Contains("raw gradients cannot use allgather") && Contains("take ring"));
}

TEST_CASE("a Decode that gathers refuses what lacks a message") {
  runtime::Case made = runtime::make_case("allgather", 2, 1, "onebit", {600});
  for (casync::TaskId id = 0; id < made.graph.tasks(); ++id) {
    if (!casync::gathers(made.graph[id])) continue;
    made.graph.operands[id].reads = casync::kNoIndex;
    break;
  }
  CHECK_THROWS_WITH(runtime::read_dataflow(made.graph), Contains("names no room for them"));
}

TEST_CASE("at 1 % an all-gather is five times as fast as a ring in half precision") {
  const models::Model model = runtime::make_model({4'000'000, 1000, 900'000});
  const costs::Profile costs = profile();
  planner::Machines machines{costs, costs::cluster_from_profile(costs, 8)};
  const auto problem = [&](const std::string& topology, const std::string& algorithm) {
    planner::Problem made = {.model = model,
                             .topology = topology,
                             .nodes = 8,
                             .algorithms = {algorithm},
                             .profile = &costs,
                             .machines = &machines};
    made.limits.evaluations = 1000;
    return made;
  };
  const auto planned_s = [&](const planner::Problem& one) {
    return planner::simulated_iteration_s(model, planner::search_timeline(one).plan, machines);
  };
  const planner::Problem sparse = problem("allgather", "dgc(rho=0.01)");
  const double sparse_s = planned_s(sparse);
  // A node sends 7 messages * 8 bytes * 1 % = 0.56 bytes per element, and in a ring in fp16 2 * 7/8
  // * 2 = 3.5.
  CHECK(sparse_s < planned_s(problem("ring", "fp16")) / 5);
  const planner::Problem best = problem("best", "dgc(rho=0.01)");
  CHECK(planned_s(best) <= sparse_s);
  for (const planner::Problem& any : {sparse, best}) {
    const double bound_s = planner::lower_bound(model, machines, make_choices(any)).seconds;
    CHECK(bound_s > 0);
    CHECK(bound_s <= planned_s(any));
  }
}

TEST_CASE("a plan goes dense from the density on at which both ways take as long") {
  const models::Model model = runtime::make_model({4'000'000});
  costs::Profile costs = profile();
  for (auto& [name, codec] : costs.codecs) codec = {};
  costs.merge = {};
  planner::Machines machines{costs, costs::cluster_from_profile(costs, 8), sim::Network::kPort};
  planner::Problem problem = {.model = model,
                              .topology = "allgather",
                              .nodes = 8,
                              .algorithms = {"dgc(rho=0.01)"},
                              .profile = &costs,
                              .machines = &machines};
  planner::TimedPlan plan = {.plan = plan_of(8, 8)};
  plan.plan.algorithms[0].name = "dgc(rho=0.01)";
  plan.plan.decisions = {{0, 8}};
  // The sparse all-gather sends as many bytes as a dense ring if 7 * 8 rho n = 2 * 7/8 * 4 n, so
  // rho = 1/8; as a ring in fp16 if rho = 1/16. Times also include the overhead per message.
  const auto dense_of = [&] {
    const auto found = planner::break_even_density(problem, plan);
    REQUIRE(found.has_value());
    CHECK(found->diagnostic.empty());
    return found->dense;
  };
  const auto raw = dense_of();
  REQUIRE(raw.has_value());
  CHECK(raw->algorithm == "none");
  CHECK(raw->above == Approx(1.0 / 8).epsilon(0.02));
  problem.algorithms.push_back("fp16");
  const auto half = dense_of();
  REQUIRE(half.has_value());
  CHECK(half->algorithm == "fp16");
  CHECK(half->above == Approx(1.0 / 16).epsilon(0.02));
  // A packed entry has 3.07 bytes at a density of 1 %, and fewer at a higher one, as indices are
  // shorter.
  plan.plan.algorithms[0].name = "dgc(rho=0.01,packing=2)";
  const auto packed = dense_of();
  REQUIRE(packed.has_value());
  CHECK(packed->above > 2 * half->above);

  plan.plan.decisions = {{casync::kRaw, 8}};
  CHECK_FALSE(planner::break_even_density(problem, plan).has_value());  // no gradient is sparse
  plan.plan.decisions = {{0, 8}};
  plan.plan.topology = "ps";
  CHECK_FALSE(planner::break_even_density(problem, plan).has_value());
}
