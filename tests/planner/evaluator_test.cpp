#include "planner/timing/evaluator.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <random>

#include "casync/topology.hpp"
#include "io/error.hpp"
#include "planner/timing/workbench.hpp"
#include "sim/folding.hpp"
#include "tests/planner/random_problem.hpp"

namespace hipress::planner {
namespace {

Candidate random_candidate(const Choices& choices, std::mt19937_64& draws) {
  Candidate candidate = {static_cast<std::uint32_t>(draws() % choices.schemes.size()), {}};
  for (const auto& options : choices.gradients) {
    candidate.options.push_back(static_cast<std::uint16_t>(draws() % options.size()));
  }
  return candidate;
}

/// A random candidate in which many gradients have a K that is a multiple of N.
Candidate rotating_candidate(const Problem& problem, const Choices& choices,
                             std::mt19937_64& draws) {
  Candidate candidate = random_candidate(choices, draws);
  for (std::size_t g = 0; g < choices.gradients.size(); ++g) {
    const auto& options = choices.gradients[g];
    for (std::uint16_t i = 0; i < options.size(); ++i) {
      const bool rotates = options[i].partitions % static_cast<int>(problem.nodes) == 0;
      if (rotates && (draws() % 3 == 0 || i == 0)) candidate.options[g] = i;
    }
  }
  return candidate;
}

std::int64_t simulated(const Problem& problem, const Choices& choices, const Candidate& candidate,
                       casync::Folding folding) {
  const casync::Plan plan = make_plan(problem, choices, candidate.scheme, candidate.options);
  const sim::TaskCosts costs(*problem.profile, plan.algorithms);
  return sim::simulate(casync::expand(problem.model, plan, folding), costs,
                       problem.machines->cluster,
                       {.network = sim::Network::kPort,
                        .transfer_order = choices.schemes[candidate.scheme].transfer_order})
      .iteration.count();
}

Problem everything(RandomProblem& random) {
  Problem problem = random.problem(sim::Network::kPort);
  problem.grouping = Grouping::kAny;
  problem.transfer_order = OrderChoice::kBest;
  problem.topology = "best";
  return problem;
}

TEST_CASE("more algorithms than a plan can mix are refused") {
  RandomProblem random(1, {.most_gradients = 4, .most_nodes = 4});
  Problem problem = random.problem(sim::Network::kPort);
  problem.algorithms.clear();
  for (int i = 1; i <= 127; ++i) {
    problem.algorithms.push_back(fmt::format("tbq(tau={})", 0.001 * i));
  }
  problem.algorithms.push_back("dgc");
  CHECK_THROWS_WITH(make_choices(problem), Catch::Contains("algorithm 'dgc' is one more than the "
                                                           "127 that a plan can mix"));
}

TEST_CASE("exact timelines end when the simulator says, to the picosecond") {
  std::mt19937_64 draws(1);
  PatternSimulator timeline;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RandomProblem random(seed, {.most_gradients = 12, .most_nodes = 16});
    // Free merges give an instant several rounds of events.
    if (seed % 4 == 0) random.profile.merge = {};
    if (seed % 5 == 0) random.model.forward_s = 1e-3;
    if (seed % 10 == 0) random.model.micro_steps = 3;
    if (seed % 3 == 0) {
      for (auto& gradient : random.model.gradients) gradient.ready_s = seed % 2 == 0 ? 0 : 1e-3;
    }
    if (seed % 7 == 0) {
      random.machines.cluster.gpus_per_node = 4;
      random.machines.cluster.gpu_link = {2e-6, 20e9};
      random.machines.cluster.compute_speed.assign(random.machines.cluster.nodes, 0.75);
    }
    const Problem problem = everything(random);
    const Choices choices = make_choices(problem);
    Evaluator evaluator(problem, choices);
    REQUIRE(nodes_are_alike(problem.machines->cluster));
    for (int i = 0; i < 6; ++i) {
      const Candidate candidate = random_candidate(choices, draws);
      if (!evaluator.can_be_exact(candidate)) continue;
      CAPTURE(seed, i, candidate.scheme, problem.nodes);
      CHECK(timeline.run(evaluator.exact(candidate)) ==
            simulated(problem, choices, candidate, casync::Folding::kNone));
    }
  }
}

TEST_CASE("folded timelines end when the simulator says, to the picosecond") {
  std::mt19937_64 draws(2);
  PatternSimulator timeline;
  int folded = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    RandomProblem random(seed, {.most_gradients = 8, .most_nodes = 16});
    if (seed % 4 == 0) random.profile.merge = {};
    for (auto& gradient : random.model.gradients) {
      gradient.elements = (gradient.elements / 2048 + 1) * 2048;  // slices are equal for K <= 4·16
    }
    const Problem problem = everything(random);
    const Choices choices = make_choices(problem);
    Evaluator evaluator(problem, choices);
    for (int i = 0; i < 4; ++i) {
      const Candidate candidate = rotating_candidate(problem, choices, draws);
      if (!evaluator.can_be_exact(candidate)) continue;
      const PatternGraph schedule = evaluator.exact(candidate);
      if (schedule.representatives > 1) continue;
      ++folded;
      CAPTURE(seed, i, candidate.scheme, problem.nodes);
      const std::int64_t time = timeline.run(schedule);
      CHECK(time == simulated(problem, choices, candidate, casync::Folding::kFolded));
      CHECK(time == simulated(problem, choices, candidate, casync::Folding::kNone));
    }
  }
  CHECK(folded > 20);
}

TEST_CASE("a timeline that begins or ends with another is as one from the start") {
  std::mt19937_64 draws(3);
  PatternSimulator fresh, reusing;
  int abandoned = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    RandomProblem random(seed, {.least_gradients = 4, .most_gradients = 40, .most_nodes = 8});
    const Problem problem = everything(random);
    const Choices choices = make_choices(problem);
    Evaluator evaluator(problem, choices);
    const Candidate start = random_candidate(choices, draws);
    for (const bool coarse : {true, false}) {
      if (!coarse && !evaluator.can_be_exact(start)) continue;
      const auto schedule = [&](const Candidate& candidate) {
        return coarse ? evaluator.coarse(candidate) : evaluator.exact(candidate);
      };
      const Recording base = reusing.record(schedule(start));
      CHECK(base.iteration == fresh.run(schedule(start)));
      for (int i = 0; i < 25; ++i) {
        Candidate changed = start;
        for (int changes = 0; changes < 1 + i % 3; ++changes) {
          const std::size_t g = draws() % changed.options.size();
          changed.options[g] = static_cast<std::uint16_t>(draws() % choices.gradients[g].size());
        }
        CAPTURE(seed, coarse, i);
        const std::int64_t time = fresh.run(schedule(changed));
        CHECK(reusing.run(schedule(changed), kNever, &base) == time);
        // With a limit, times up to the limit stay the same.
        const std::int64_t limited = reusing.run(schedule(changed), base.iteration, &base);
        CHECK(limited == (time <= base.iteration ? time : kNever));
        abandoned += limited == kNever;
      }
    }
  }
  CHECK(abandoned > 100);
  CHECK(reusing.steps() < 2 * fresh.steps());
}

TEST_CASE("a plan that cannot be folded is estimated coarsely where whole graphs are too large") {
  // 150 gradients have 3.5 · 2 · 64 · 63 tasks each: 4.2e6. K = 15 is not a multiple of 64.
  RandomProblem random(1, {.most_gradients = 4, .most_nodes = 4});
  Problem problem = random.problem(sim::Network::kPort);
  models::Model model;
  for (int g = 0; g < 150; ++g) {
    model.gradients.push_back({.name = fmt::format("g{}", g), .elements = 1 << 20});
  }
  Machines machines = {*problem.profile, costs::cluster_from_profile(*problem.profile, 64),
                       sim::Network::kPort};
  Problem large = {.model = model,
                   .topology = "ps",
                   .nodes = 64,
                   .algorithms = problem.algorithms,
                   .profile = problem.profile,
                   .machines = &machines};
  REQUIRE(folded_only(large));
  const Choices choices = make_choices(large);
  const Candidate folded = {0, std::vector<std::uint16_t>(150, 0)};
  CHECK(Evaluator(large, choices).can_be_exact(folded));
  TimedPlan plan = {.plan = make_plan(large, choices, folded.scheme, folded.options)};
  plan.plan.decisions[7].partitions = 15;
  Workbench bench(large, plan);
  CHECK(bench.estimate_base(bench.plan()) > 0);
  CHECK_FALSE(bench.estimates_are_exact());
}

TEST_CASE("what takes longer than times can hold is refused, as the simulator does") {
  RandomProblem random(1, {.most_gradients = 3, .most_nodes = 4});
  const auto refusal = [&] {
    const Problem problem = everything(random);
    const Choices choices = make_choices(problem);
    try {
      Evaluator evaluator(problem, choices);
      const Candidate raw = {0, std::vector<std::uint16_t>(choices.gradients.size(), 0)};
      evaluator.exact(raw);
      evaluator.coarse(raw);
    } catch (const io::InputError& error) {
      return std::string(error.what());
    }
    return std::string("nothing is");
  };
  costs::Cluster& cluster = random.machines.cluster;
  CHECK(refusal() == "nothing is");
  std::string check = "bandwidths";
  SECTION("bandwidth") { cluster.link.bandwidth = cluster.link.bandwidth_both_ways = 1e-9; }
  SECTION("overhead") { cluster.link.overhead_s = 1e9; }
  SECTION("latency") { cluster.link.latency_s = 1e9; }
  SECTION("compute speed") {
    random.model.forward_s = 1e6;
    cluster.compute_speed.assign(cluster.nodes, 1e-3);
    check = "compute speeds";
  }
  CHECK_THAT(refusal(), Catch::Contains("must take 0 s to 1e+06 s: check " + check));
}

}  // namespace
}  // namespace hipress::planner
