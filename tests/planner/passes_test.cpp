#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <limits>

#include "io/error.hpp"
#include "planner/baselines/baselines.hpp"
#include "planner/search/passes/runner.hpp"
#include "planner/search/search.hpp"
#include "planner/search/timeline_search.hpp"
#include "planner/timing/forecast.hpp"
#include "tests/planner/random_problem.hpp"

namespace hipress::planner {
namespace {

using Catch::Contains;

const RandomProblem::Range kSmall = {.most_gradients = 25, .most_nodes = 8};

Problem limited(RandomProblem& random, sim::Network network) {
  Problem problem = random.problem(network);
  problem.limits.evaluations = 3000;
  return problem;
}

TimedPlan timed(const Problem& problem, casync::Plan plan) {
  const double iteration_s = simulated_iteration_s(problem.model, plan, *problem.machines);
  return {std::move(plan), sim::TransferOrder::kReady, iteration_s};
}

/// Plan that compresses every gradient with the first algorithm and K = N.
TimedPlan all_compressed(const Problem& problem) {
  casync::Plan plan;
  plan.topology = problem.topology;
  plan.nodes = problem.nodes;
  for (const std::string& name : problem.algorithms) plan.algorithms.push_back(algorithm(name));
  plan.decisions.assign(problem.model.gradients.size(),
                        {0, static_cast<std::int32_t>(problem.nodes)});
  return timed(problem, std::move(plan));
}

int total_coarseness(const Problem& problem, const casync::Plan& plan) {
  int total = 0;
  for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
    total += coarseness_of(problem.model.gradients[g], plan, plan.decisions[g]).place;
  }
  return total;
}

std::int64_t total_partitions(const casync::Plan& plan) {
  std::int64_t total = 0;
  for (const casync::Decision& decision : plan.decisions) total += decision.partitions;
  return total;
}

TEST_CASE("passes never make an iteration longer, and what they predict is what is simulated",
          "[slow]") {
  int changed = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    RandomProblem random(seed, kSmall);
    for (const sim::Network network : {sim::Network::kPort, sim::Network::kFair}) {
      Problem problem = limited(random, network);
      problem.grouping = Grouping::kAny;
      problem.transfer_order = OrderChoice::kBest;
      problem.tolerance = 0;
      const TimedPlan before = all_compressed(problem);
      const PolishedPlan polished = run_passes(problem, before, {});
      CHECK(polished.warnings.empty());
      CHECK(polished.plan.iteration_s <= before.iteration_s);
      CHECK(polished.plan.iteration_s == simulated_iteration_s(problem.model, polished.plan.plan,
                                                               random.machines,
                                                               polished.plan.transfer_order));
      CHECK(verify(problem, polished.plan.plan).empty());
      REQUIRE(polished.reports.size() == passes().size());
      for (std::size_t i = 0; i < passes().size(); ++i) {
        const PassReport& report = polished.reports[i];
        CHECK(report.name == passes()[i].name);
        CHECK(report.iteration_after_s <= report.iteration_before_s);
        changed += report.changed ? 1 : 0;
      }
    }
  }
  CHECK(changed >= 24);
}

TEST_CASE("a pass gives back accuracy or partitions, and takes neither", "[slow]") {
  int finer = 0, fewer = 0;
  for (std::uint64_t seed = 20; seed < 32; ++seed) {
    CAPTURE(seed);
    RandomProblem random(seed, kSmall);
    const Problem problem = limited(random, sim::Network::kPort);
    const TimedPlan before = timed(problem, search_timeline(problem).plan);
    Budget budget(problem.limits);
    const PassContext context = {problem, budget, 1};
    const TimedPlan accurate = more_accurate(context, before);
    CHECK(total_coarseness(problem, accurate.plan) <= total_coarseness(problem, before.plan));
    finer += total_coarseness(problem, accurate.plan) < total_coarseness(problem, before.plan);
    Budget other(problem.limits);
    const TimedPlan cut = fewer_partitions({problem, other, 1}, before);
    CHECK(total_coarseness(problem, cut.plan) == total_coarseness(problem, before.plan));
    CHECK(total_partitions(cut.plan) <= total_partitions(before.plan));
    fewer += total_partitions(cut.plan) < total_partitions(before.plan);
  }
  CHECK(finer >= 3);
  CHECK(fewer >= 3);
}

TEST_CASE("what hides behind backward anyway is sent as it is") {
  RandomProblem random(1, kSmall);
  // The first gradient's 4 MB take at most 10 ms, and the second is ready a second later.
  random.model.gradients = {{.name = "early", .elements = 1'000'000, .ready_s = 0},
                            {.name = "late", .elements = 32, .ready_s = 1}};
  random.profile.link.bandwidth = random.profile.link.bandwidth_both_ways = 1e9;
  random.machines.cluster = costs::cluster_from_profile(random.profile, 4);
  Problem problem = limited(random, sim::Network::kFair);
  const PolishedPlan polished = run_passes(problem, all_compressed(problem), {});
  CHECK(polished.plan.plan.decisions[0].algorithm == casync::kRaw);
}

TEST_CASE("algorithms that no gradient uses are dropped") {
  RandomProblem random(3, kSmall);
  const Problem problem = limited(random, sim::Network::kPort);
  TimedPlan plan = all_compressed(problem);
  for (casync::Decision& decision : plan.plan.decisions) decision.algorithm = 2;
  plan.plan.decisions[0].algorithm = casync::kRaw;
  Budget budget(problem.limits);
  const TimedPlan changed = unused_algorithms({problem, budget, 1}, plan);
  REQUIRE(changed.plan.algorithms.size() == 1);
  CHECK(changed.plan.algorithms[0].name == plan.plan.algorithms[2].name);
  CHECK(changed.plan.decisions[0].algorithm == casync::kRaw);
  CHECK(changed.plan.decisions[1].algorithm == 0);
}

TEST_CASE("the same evaluations give the same polished plan") {
  RandomProblem random(5, kSmall);
  Problem problem = limited(random, sim::Network::kFair);
  problem.limits.evaluations = 60;
  const TimedPlan before = all_compressed(problem);
  CHECK(same_plan(run_passes(problem, before, {}).plan, run_passes(problem, before, {}).plan));
}

TEST_CASE("without a budget, passes simulate nothing and leave the decisions") {
  RandomProblem random(5, kSmall);
  Problem problem = limited(random, sim::Network::kFair);
  problem.limits.evaluations = 0;
  const TimedPlan before = all_compressed(problem);
  const TimedPlan after = run_passes(problem, before, {}).plan;
  CHECK(after.iteration_s == before.iteration_s);
  CHECK(total_coarseness(problem, after.plan) == total_coarseness(problem, before.plan));
}

TEST_CASE("no gradient is compressed that could be raw within the tolerance", "[slow]") {
  int compressing = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    RandomProblem random(seed, {.least_gradients = 2, .most_gradients = 12, .most_nodes = 8});
    Problem problem = random.problem(seed % 2 == 0 ? sim::Network::kFair : sim::Network::kPort);
    problem.limits.evaluations = 400;
    const TimedPlan found = timed(problem, search_timeline(problem).plan);
    problem.limits.evaluations = 100'000;
    const PolishedPlan polished = run_passes(problem, found, {"fewer_partitions"});
    const auto report =
        std::find_if(polished.reports.begin(), polished.reports.end(),
                     [](const PassReport& pass) { return pass.name == "more_accurate"; });
    REQUIRE(report != polished.reports.end());
    const Ceiling ceiling = report->ceiling;
    CHECK(ceiling.iteration_s <= report->iteration_before_s * (1 + kTolerance));
    REQUIRE(ceiling.upper_s);
    CHECK(is_within(ceiling, polished.plan));
    const Choices choices = make_choices(problem);
    for (std::size_t g = 0; g < problem.model.gradients.size(); ++g) {
      if (polished.plan.plan.decisions[g].algorithm == casync::kRaw) continue;
      ++compressing;
      for (const casync::Decision& option : choices.gradients[g]) {
        if (option.algorithm != casync::kRaw) continue;
        casync::Plan raw = polished.plan.plan;
        raw.decisions[g] = option;
        TimedPlan changed = timed(problem, std::move(raw));
        changed.upper_s = upper_end_s(problem, changed);
        CHECK_FALSE(is_within(ceiling, changed));
      }
    }
  }
  CHECK(compressing > 100);
}

/// The baselines that may be the plan, with their times and upper ends.
std::vector<TimedPlan> rivals_among_baselines(const Problem& problem) {
  std::vector<TimedPlan> rivals;
  for (const Baseline& baseline : simulate_baselines(problem, *problem.machines)) {
    if (!baseline.iteration_s || !may_be_plan(problem, baseline.plan)) continue;
    TimedPlan rival = {baseline.plan, baseline.transfer_order, *baseline.iteration_s};
    rival.upper_s = upper_end_s(problem, rival);
    rivals.push_back(std::move(rival));
  }
  return rivals;
}

TEST_CASE(
    "a polished plan is no slower than a baseline, neither in the median nor in the upper end",
    "[slow]") {
  constexpr double kNothing = 1 + 1e-6;
  int compared = 0, in_between = 0, lower = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    RandomProblem random(seed, {.least_gradients = 2, .most_gradients = 12, .most_nodes = 8});
    Problem problem = random.problem(seed % 2 == 0 ? sim::Network::kFair : sim::Network::kPort);
    if (seed % 3 == 0) problem.grouping = Grouping::kAny;
    problem.limits.evaluations = 400;
    TimedPlan found = timed(problem, search_timeline(problem).plan);
    Rivals rivals = {.others = rivals_among_baselines(problem)};
    double least_upper_s = std::numeric_limits<double>::infinity();
    for (const TimedPlan& rival : rivals.others) {
      if (rival.iteration_s < found.iteration_s) found = rival;
      least_upper_s = std::min(least_upper_s, *rival.upper_s);
    }
    problem.limits.evaluations = 10'000;
    const PolishedPlan polished = run_passes(problem, found, {}, rivals);
    CHECK(polished.warnings.empty());
    const TimedPlan& plan = polished.plan;
    REQUIRE(plan.upper_s);
    CHECK(*plan.upper_s == Approx(*upper_end_s(problem, plan)));
    for (const TimedPlan& rival : rivals.others) {
      ++compared;
      CHECK(plan.iteration_s <= rival.iteration_s * kNothing);
      if (rival.iteration_s <= plan.iteration_s) CHECK(*plan.upper_s <= *rival.upper_s * kNothing);
    }
    // The plan may lie between the baselines with the shortest median and the lowest upper end.
    in_between += *plan.upper_s > least_upper_s * kNothing;
    lower += *plan.upper_s < *upper_end_s(problem, found);
  }
  CHECK(compared > 1000);
  CHECK(in_between <= 4);
  CHECK(lower >= 20);
}

TEST_CASE("a topology that encodes less often is taken within the tolerance", "[slow]") {
  int rarer = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    RandomProblem random(seed, kSmall);
    Problem problem = limited(random, sim::Network::kPort);
    problem.topology = "ring";
    TimedPlan ring = timed(problem, search_timeline(problem).plan);
    problem.topology = "best";
    problem.tolerance = 0.4;
    Budget budget(problem.limits);
    const PassContext context = {problem, budget, 1};
    const TimedPlan changed = fewer_encodings(context, ring);
    CHECK(changed.iteration_s <= ring.iteration_s * 1.4);
    if (same_plan(changed, ring)) continue;
    ++rarer;
    CHECK(coarseness_of(problem, changed.plan) < coarseness_of(problem, ring.plan));
    CHECK(verify(problem, changed.plan).empty());
  }
  CHECK(rarer >= 3);
}

TEST_CASE("a plan without compression is taken where it is within the tolerance") {
  RandomProblem random(3, kSmall);
  Problem problem = limited(random, sim::Network::kFair);
  const TimedPlan lossy = all_compressed(problem);
  TimedPlan raw = lossy;
  raw.plan.decisions.assign(raw.plan.decisions.size(),
                            {casync::kRaw, static_cast<std::int32_t>(problem.nodes)});
  raw = timed(problem, raw.plan);
  problem.tolerance = 0.4;
  TimedPlan before = lossy;
  before.iteration_s = raw.iteration_s / 1.3;  // the pass believes this time
  Budget budget(problem.limits);
  const PassContext context = {problem, budget, 1, {.uncompressed = &raw}};
  CHECK(same_plan(more_accurate(context, before), raw));
}

// ---- the runner ----

TimedPlan no_partitions(const PassContext&, const TimedPlan& plan) {
  TimedPlan broken = plan;
  broken.plan.decisions.front().partitions = 0;
  return broken;
}
TimedPlan no_such_algorithm(const PassContext&, const TimedPlan& plan) {
  TimedPlan broken = plan;
  broken.plan.decisions.front().algorithm = 9;
  return broken;
}
TimedPlan forgets_a_gradient(const PassContext&, const TimedPlan& plan) {
  TimedPlan broken = plan;
  broken.plan.decisions.pop_back();
  return broken;
}
TimedPlan thousands_of_partitions(const PassContext&, const TimedPlan& plan) {
  TimedPlan slow = plan;
  for (casync::Decision& decision : slow.plan.decisions) decision.partitions = 1000;
  slow.iteration_s = 0;  // the runner simulates the plan instead of believing this
  return slow;
}

TEST_CASE("a pass that breaks the plan is named") {
  RandomProblem random(5, kSmall);
  const Problem problem = limited(random, sim::Network::kPort);
  const TimedPlan before = all_compressed(problem);
  for (const Pass& broken : {Pass{"cuts", "", no_partitions}, Pass{"picks", "", no_such_algorithm},
                             Pass{"forgets", "", forgets_a_gradient}}) {
    const std::array rows = {broken};
    CHECK_THROWS_WITH(run_passes(problem, before, {}, {}, rows),
                      Contains(fmt::format("'{}'", broken.name)) && Contains("internal"));
    CHECK(run_passes(problem, before, {std::string(broken.name)}, {}, rows).reports.empty());
  }
}

TEST_CASE("a pass that makes the plan slower is undone with a warning") {
  RandomProblem random(5, kSmall);
  const Problem problem = limited(random, sim::Network::kPort);
  const TimedPlan before = all_compressed(problem);
  const std::array rows = {Pass{"slows", "", thousands_of_partitions}};
  const PolishedPlan polished = run_passes(problem, before, {}, {}, rows);
  CHECK(same_plan(polished.plan, before));
  CHECK_FALSE(polished.reports.at(0).changed);
  REQUIRE(polished.warnings.size() == 1);
  CHECK_THAT(polished.warnings[0], Contains("'slows'"));
}

TEST_CASE("passes are named as they are called") {
  CHECK(parse_pass_names("scheme,more_accurate") ==
        std::vector<std::string>{"scheme", "more_accurate"});
  CHECK_THROWS_WITH(parse_pass_names("more_acurate"),
                    Contains("'more_acurate'") && Contains("did you mean 'more_accurate'"));
  CHECK_THROWS_AS(parse_pass_names(""), io::InputError);
}

}  // namespace
}  // namespace hipress::planner
