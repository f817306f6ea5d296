#include "planner/analysis/robust.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "io/error.hpp"
#include "tests/planner/random_problem.hpp"

namespace hipress::planner {
namespace {

const RandomProblem::Range kSmall = {.most_gradients = 8, .most_nodes = 4};

TimedPlan decide_all(const Problem& problem, const casync::Decision& decision) {
  casync::Plan plan;
  plan.topology = problem.topology;
  plan.nodes = problem.nodes;
  for (const std::string& name : problem.algorithms) plan.algorithms.push_back(algorithm(name));
  plan.decisions.assign(problem.model.gradients.size(), decision);
  return {std::move(plan), sim::TransferOrder::kReady, 0};
}

std::vector<RobustCandidate> candidates(const Problem& problem) {
  const auto nodes = static_cast<std::int32_t>(problem.nodes);
  return {{"nominal", decide_all(problem, {casync::kRaw, nodes})},
          {"onebit", decide_all(problem, {0, nodes})},
          {"again", decide_all(problem, {0, nodes})},
          {"whole", decide_all(problem, {0, 1})},
          {"fp16", decide_all(problem, {2, nodes})}};
}

TEST_CASE("factors of bandwidth are within bounds, spread, and of the seed") {
  const Uncertainty some = {.bandwidth = 0.2, .seed = 1};
  double least = 2, most = 0, sum = 0;
  for (std::uint32_t replica = 0; replica < 1000; ++replica) {
    const double factor = bandwidth_factor(some, replica);
    least = std::min(least, factor);
    most = std::max(most, factor);
    sum += factor;
  }
  CHECK(least >= 0.8);
  CHECK(least < 0.81);
  CHECK(most <= 1.2);
  CHECK(most > 1.19);
  // Standard deviation of the mean: 0.2 / sqrt(3 · 1000) = 0.0037.
  CHECK(sum / 1000 == Approx(1).margin(0.015));
  CHECK(bandwidth_factor({.seed = 1}, 5) == 1);
  CHECK(bandwidth_factor({.bandwidth = 0.2, .seed = 2}, 5) != bandwidth_factor(some, 5));
}

TEST_CASE("percentiles are those of simulations with each bandwidth") {
  RandomProblem random(2, kSmall);
  const Problem problem = random.problem(sim::Network::kFair);
  const Uncertainty uncertainty = {.bandwidth = 0.5, .replicas = 20, .seed = 3};
  const RobustChoice choice = choose_robust(problem, candidates(problem), uncertainty);
  const RobustCandidate& nominal = choice.candidates.at(0);
  std::vector<double> times_s;
  for (std::uint32_t replica = 0; replica < 20; ++replica) {
    const Machines machines =
        with_bandwidth(random.machines, bandwidth_factor(uncertainty, replica));
    times_s.push_back(simulated_iteration_s(problem.model, nominal.plan.plan, machines));
  }
  std::sort(times_s.begin(), times_s.end());
  CHECK(nominal.spread.replicas == 20);
  CHECK(nominal.spread.p50_s == times_s[9]);   // ten of twenty times are at most this
  CHECK(nominal.spread.p90_s == times_s[17]);  // eighteen are
}

TEST_CASE("every link has the factor, those between the GPUs of a node too") {
  RandomProblem random(2, kSmall);
  Machines machines = random.machines;
  machines.cluster.host_link = machines.cluster.link;
  machines.cluster.gpus_per_node = 4;
  machines.cluster.gpu_link = {.overhead_s = 1e-6, .bandwidth = 8e9};
  const costs::Cluster half = with_bandwidth(machines, 0.5).cluster;
  CHECK(half.link.bandwidth == machines.cluster.link.bandwidth / 2);
  CHECK(half.link.bandwidth_both_ways == machines.cluster.link.bandwidth_both_ways / 2);
  CHECK(half.host_link.value() == half.link);
  CHECK(half.gpu_link.bandwidth == 4e9);
  CHECK(half.gpu_link.overhead_s == 1e-6);
  CHECK(half.link.latency_s == machines.cluster.link.latency_s);
}

TEST_CASE("the plan with the least 90th percentile is chosen, for any number of jobs") {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    CAPTURE(seed);
    RandomProblem random(seed, kSmall);
    Problem problem = random.problem(sim::Network::kPort);
    const Uncertainty uncertainty = {
        .jitter = std::make_shared<const sim::Jitter>(sim::Jitter::parse("lognormal:0.2")),
        .bandwidth = 0.3,
        .replicas = 40,
        .seed = seed};
    const RobustChoice one = choose_robust(problem, candidates(problem), uncertainty);
    CHECK(one.candidates.size() == 4);  // "again" equals "onebit", so it is left out
    for (const RobustCandidate& candidate : one.candidates) {
      CHECK(candidate.spread.p50_s <= candidate.spread.p90_s);
      if (candidate.spread.replicas < 40) continue;
      CHECK(one.candidates[one.best].spread.p90_s <= candidate.spread.p90_s);
    }
    CHECK(one.candidates[one.best].spread.replicas == 40);
    CHECK(one.candidates[0].spread.replicas == 40);
    problem.limits.jobs = 3;
    const RobustChoice three = choose_robust(problem, candidates(problem), uncertainty);
    CHECK(three.best == one.best);
    CHECK(three.candidates[0].spread.p90_s == one.candidates[0].spread.p90_s);
  }
}

TEST_CASE("candidates are the nominal plan, others, and plans for less and more bandwidth") {
  RandomProblem random(2, kSmall);
  Problem problem = random.problem(sim::Network::kPort);
  problem.limits.evaluations = 100;
  const TimedPlan nominal = decide_all(problem, {0, 1});
  const auto found = robust_candidates(problem, find_search("timeline"), nominal,
                                       {{"none", nominal}}, {.bandwidth = 0.25, .replicas = 10});
  std::vector<std::string> names;
  for (const RobustCandidate& candidate : found) {
    names.push_back(candidate.name);
    CHECK(candidate.plan.plan.decisions.size() == problem.model.gradients.size());
  }
  CHECK(names ==
        std::vector<std::string>{"nominal", "none", "for -25 % bandwidth", "for +25 % bandwidth"});
}

}  // namespace
}  // namespace hipress::planner
