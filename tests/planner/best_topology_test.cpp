#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "planner/analysis/explain.hpp"
#include "planner/baselines/baselines.hpp"
#include "planner/bound/bound.hpp"
#include "planner/search/timeline_search.hpp"
#include "tests/planner/brute_force.hpp"
#include "tests/planner/random_problem.hpp"
#include "tests/planner/tool_run.hpp"

namespace hipress::planner {
namespace {

using Catch::Contains;

/// Four nodes with links of 1 GB/s, and a model whose gradients are all ready at time 0.
struct FourNodes {
  FourNodes(const std::vector<std::int64_t>& sizes, double overhead_s, double kernel_s) {
    for (const std::int64_t elements : sizes) {
      model.gradients.push_back(
          {.name = fmt::format("g{}", model.gradients.size()), .elements = elements});
    }
    profile.link = {
        .overhead_s = overhead_s, .bandwidth = 1e9, .bandwidth_both_ways = 1e9, .latency_s = 5e-6};
    const costs::Curve kernel = {{{0, kernel_s, 0}}, 0};
    profile.codecs["onebit"] = profile.codecs["fp16"] = {kernel, kernel, kernel};
    profile.merge = kernel;
    machines.cluster = costs::cluster_from_profile(profile, 4);
  }

  Problem problem(const std::string& topology, sim::Network network = sim::Network::kPort) {
    machines.network = network;
    Problem problem = {.model = model,
                       .topology = topology,
                       .nodes = 4,
                       .algorithms = {"onebit", "fp16"},
                       .profile = &profile,
                       .machines = &machines};
    problem.limits.evaluations = 1000;
    return problem;
  }

  /// Simulated time of the plan that the search finds for that topology.
  double planned_s(const std::string& topology) {
    const Problem planned = problem(topology);
    return simulated_iteration_s(model, search_timeline(planned).plan, machines);
  }

  models::Model model;
  costs::Profile profile;
  Machines machines{profile, {}};
};

TEST_CASE("where kernels are slow, the best plan is the library's all-reduce of everything") {
  // An ideal ring takes 2(N-1)·(o + S/(N·B) + L) = 6·(10 us + 4e6/(4·1e9) s + 5 us) = 6.09 ms. The
  // topology ring sends the same bytes, and has kernels of 1 ms between them.
  FourNodes four({1'000'000}, 10e-6, 1e-3);
  for (const sim::Network network : {sim::Network::kPort, sim::Network::kFair}) {
    const Problem problem = four.problem("best", network);
    const casync::Plan plan = in_one_topology(search_timeline(problem).plan);
    CHECK(plan.topology == "allreduce");
    CHECK(plan.raw_topology.empty());
    CHECK(simulated_iteration_s(four.model, plan, four.machines) == Approx(6.09e-3).epsilon(1e-9));
    const double bound = lower_bound(four.model, four.machines, make_choices(problem)).seconds;
    CHECK(bound <= 6.09e-3);
    CHECK(bound >= 6.08e-3);
    const std::vector<Baseline> baselines = simulate_baselines(problem, four.machines);
    CHECK(baselines.front().name == "none");
    CHECK(baselines.front().plan.topology == "allreduce");
    CHECK(baselines.front().iteration_s.value() == Approx(6.09e-3).epsilon(1e-9));
  }
}

TEST_CASE("a plan may send raw gradients by all-reduce, and compress others over ps or ring") {
  // A message costs 1 ms, an all-reduce 0.1 ms and 10 ns a byte. By all-reduce, the 400 bytes of g0
  // take 0.104 ms; otherwise N-1 messages to a server and back take at least 6 ms. The 12.8 MB of
  // g1 take 128 ms by all-reduce, but as onebit (0.4 MB) 6·(1 + 0.4) ms through a server's port.
  FourNodes four({100, 3'200'000}, 1e-3, 1e-4);
  four.profile.all_reduce[4] = {{{0, 1e-4, 10e-9}}, 0};
  const SearchResult found = search_timeline(four.problem("best"));
  CHECK(found.plan.raw_topology == "allreduce");
  CHECK(found.plan.decisions[0].algorithm == casync::kRaw);
  REQUIRE(found.plan.decisions[1].algorithm >= 0);
  CHECK(found.plan.algorithms[static_cast<std::size_t>(found.plan.decisions[1].algorithm)].name ==
        "onebit");
  const double best = simulated_iteration_s(four.model, found.plan, four.machines);
  for (const std::string topology : {"ps", "ring", "allreduce"}) {
    CAPTURE(topology);
    CHECK(best < four.planned_s(topology));
  }
  CHECK(four.planned_s("allreduce") == Approx(0.1e-3 + 0.004e-3 + 0.1e-3 + 128e-3));
  CHECK(lower_bound(four.model, four.machines, make_choices(four.problem("best"))).seconds <= best);
  // The runner-up must be another way of sending, not the same all-reduce with another K.
  const Explanation explanation =
      explain(four.problem("best"), {found.plan, found.transfer_order, best});
  for (const GradientRow& row : explanation.rows) {
    if (row.gradient != 0) continue;
    CHECK(row.option == "raw, allreduce");
    REQUIRE(row.runner_up);
    CHECK_THAT(*row.runner_up, Contains("K = "));
  }
}

TEST_CASE("with topology all-reduce nothing is compressed, and baselines that would are left out") {
  FourNodes four({1000, 1'000'000}, 10e-6, 1e-6);
  const Problem problem = four.problem("allreduce");
  const casync::Plan plan = search_timeline(problem).plan;
  CHECK(plan.topology == "allreduce");
  for (const casync::Decision& decision : plan.decisions) {
    CHECK(decision.algorithm == casync::kRaw);
  }
  for (const Baseline& baseline : simulate_baselines(problem, four.machines)) {
    CAPTURE(baseline.name);
    const BaselineRow& row = *find_baseline(baseline.name);
    CHECK(baseline.iteration_s.has_value() == (!row.compresses || !row.topology.empty()));
    if (!baseline.iteration_s) CHECK_THAT(baseline.diagnostic, Contains("fp32"));
  }
}

TEST_CASE("gradients of half precision keep off the all-reduce of fp32") {
  FourNodes four({1000, 1'000'000}, 10e-6, 1e-6);
  four.model.gradients[1].dtype = models::Dtype::kFloat16;
  CHECK_THROWS_WITH(search_timeline(four.problem("allreduce")), Contains("half precision"));
  const Problem problem = four.problem("best");
  CHECK(search_timeline(problem).plan.decisions.size() == 2);
  for (const Baseline& baseline : simulate_baselines(problem, four.machines)) {
    CHECK(baseline.iteration_s.has_value());
    CHECK((baseline.plan.topology == "allreduce") == baseline.name.starts_with("ddp"));
  }
}

TEST_CASE(
    "among all topologies, the search comes near the fastest plan, and no bound is above it") {
  int by_all_reduce = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RandomProblem random(seed, {.least_gradients = 1, .most_gradients = 3, .most_nodes = 4});
    if (seed % 2 == 0) {  // for large gradients, an all-reduce takes twice as long as an ideal ring
      random.profile.all_reduce[4] =
          random.profile.all_reduce[2] = {{{0, 20e-6, 3 / random.profile.link.bandwidth}}, 0};
    }
    Problem problem = random.problem(sim::Network::kPort);
    problem.topology = "best";
    problem.algorithms = {"onebit", "fp16"};
    const Choices choices = few_choices(problem);
    CAPTURE(seed);
    REQUIRE(choices.schemes.size() == 4);
    const Fastest fastest(problem, choices);
    const double best = fastest.iteration_s();
    CHECK(lower_bound(problem.model, random.machines, choices, {.branch_nodes = 20}).seconds <=
          best);
    problem.limits.evaluations = 3000;
    const double found = simulated_iteration_s(
        problem.model, search_timeline(problem, choices).plan, random.machines);
    CHECK(found <= best * 1.005);
    by_all_reduce += !choices.schemes[fastest.candidate().scheme].raw_topology.empty();
  }
  CHECK(by_all_reduce > 0);
  CHECK(by_all_reduce < 18);
}

// ---- several GPUs per node ----

/// Two nodes of two GPUs. Kernels are free, and messages cost only their bytes, at 1 GB/s.
class TwoLevels : public Workplace {
 public:
  explicit TwoLevels(const std::string& gpu_bandwidth) {
    write("model.csv", "name,elements,ready_us\nonly,1000000,0\n");
    write("profile.yaml", R"(schema: hipress.profile/1
name: tiny
source: by hand
hardware: {name: a machine, device: cpu, memory_bandwidth: 10GB/s}
kernels:
  merge: {pieces: [{from: 0, a_s: 0, s_per_element: 0}]}
  codecs:
    fp16:
      encode: {pieces: [{from: 0, a_s: 1, s_per_element: 0}]}
      decode: {pieces: [{from: 0, a_s: 1, s_per_element: 0}]}
      decode_add: {pieces: [{from: 0, a_s: 1, s_per_element: 0}]}
links: {overhead: 0s, bandwidth: 1GB/s, latency: 0s}
...
)");
    write("cluster.yaml",
          "nodes: 2\ngpus_per_node: 2\ngpu_link: {bandwidth: " + gpu_bandwidth + "}\n");
  }

  /// Runs hipress-plan, which writes plan.yaml, and returns its report.
  nlohmann::json plan(const std::string& options) const {
    const ToolRun done =
        run("hipress-plan --input model.csv --profile profile.yaml --cluster cluster.yaml "
            "--algorithm none --evaluations 200 --output plan.yaml --json " +
            options);
    INFO(done.err);
    REQUIRE(done.status == 0);
    return nlohmann::json::parse(done.out);
  }

  /// Iteration time that hipress-sim predicts for plan.yaml on the same cluster.
  double simulated_s(const std::string& topology) const {
    const ToolRun done =
        run("hipress-sim --input model.csv --profile profile.yaml --cluster cluster.yaml "
            "--plan plan.yaml --json --topology " +
            topology);
    INFO(done.err);
    REQUIRE(done.status == 0);
    return nlohmann::json::parse(done.out).at("iteration_s").get<double>();
  }
};

TEST_CASE("where links in a node are fast, its GPUs sum first") {
  // S = 4 MB. The reduce-scatter and the all-gather on a node's link take S/2/B each, 0.2 ms at 10
  // GB/s. The exchange between the two nodes takes at least S/B = 4 ms. With every GPU as a node,
  // the link that two GPUs share would carry 1.5·S, which takes 6 ms.
  const TwoLevels work("10GB/s");
  const nlohmann::json report = work.plan("--topology BEST");
  CHECK(report.at("predicted_iteration_s").get<double>() == Approx(4.4e-3).epsilon(1e-6));
  CHECK(report.at("lower_bound_s").get<double>() <= 4.4e-3);
  CHECK_THAT(work.read("plan.yaml"), Contains("nodes: 2"));
  CHECK(work.simulated_s(report.at("topology")) == Approx(4.4e-3).epsilon(1e-6));
}

TEST_CASE("where links in a node are no faster than those between, every GPU is a node", "[tool]") {
  // Two levels take 2 + 4 + 2 ms. In one level, a ring of four GPUs takes 2·3/4·S/B = 6 ms.
  const TwoLevels work("1GB/s");
  const nlohmann::json report = work.plan("--topology BEST");
  CHECK(report.at("predicted_iteration_s").get<double>() == Approx(6e-3).epsilon(1e-6));
  CHECK(report.at("lower_bound_s").get<double>() <= 6e-3);
  CHECK_THAT(work.read("plan.yaml"), Contains("nodes: 4"));
  CHECK(work.simulated_s(report.at("topology")) == Approx(6e-3).epsilon(1e-6));

  SECTION("network port cannot tell") {
    const ToolRun done = work.run(
        "hipress-plan --input model.csv --profile profile.yaml --cluster cluster.yaml "
        "--algorithm none --evaluations 200 --output plan.yaml --topology BEST --network port");
    CHECK(done.status == 0);
    CHECK_THAT(done.err, Contains("every GPU a node are left out"));
    CHECK_THAT(work.read("plan.yaml"), Contains("nodes: 2"));
  }
  SECTION("a topology that is asked for keeps the levels that the cluster says") {
    CHECK(work.plan("--topology RING").at("predicted_iteration_s").get<double>() ==
          Approx(8e-3).epsilon(1e-4));
  }
  SECTION("the plan can be explained") {
    const ToolRun done = work.run(
        "hipress-plan --input model.csv --profile profile.yaml --cluster cluster.yaml "
        "--algorithm none --plan plan.yaml --explain --topology BEST");
    INFO(done.err);
    CHECK(done.status == 0);
  }
}

TEST_CASE_METHOD(Workplace, "text plans say how raw gradients go when they are replayed",
                 "[tool]") {
  const ToolRun done =
      run("hipress-plan --input resnet50 --topology BEST --nnodes 4 --profile v100-100g "
          "--evaluations 300 --network port --json");
  INFO(done.err);
  REQUIRE(done.status == 0);
  const nlohmann::json report = nlohmann::json::parse(done.out);
  CHECK(report.at("gap").get<double>() >= 0);
  const bool by_all_reduce = report.at("raw_topology") == "allreduce";
  const std::string topology = report.at("topology");
  if (by_all_reduce) CHECK_THAT(done.err, Contains("not measured"));
  const ToolRun replayed =
      run("hipress-sim --input resnet50 --plan SeCoPaPlan.txt --nnodes 4 --profile v100-100g "
          "--network port --json --topology " +
          topology + (by_all_reduce && topology != "allreduce" ? " --raw-allreduce" : ""));
  REQUIRE(replayed.status == 0);
  CHECK(nlohmann::json::parse(replayed.out).at("iteration_s").get<double>() ==
        Approx(report.at("predicted_iteration_s").get<double>()).epsilon(1e-9));
}

}  // namespace
}  // namespace hipress::planner
