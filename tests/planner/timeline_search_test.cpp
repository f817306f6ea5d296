#include "planner/search/timeline_search.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "planner/baselines/baselines.hpp"
#include "planner/choices/choices.hpp"
#include "tests/planner/random_problem.hpp"

namespace hipress::planner {
namespace {

bool same(const casync::Plan& a, const casync::Plan& b) {
  if (a.topology != b.topology || !(a.bulk == b.bulk) || !(a.batch == b.batch)) return false;
  return std::equal(a.decisions.begin(), a.decisions.end(), b.decisions.begin(), b.decisions.end(),
                    [](const casync::Decision& x, const casync::Decision& y) {
                      return x.algorithm == y.algorithm && x.partitions == y.partitions;
                    });
}

struct Compared {
  double planned_s = 0;
  double best_baseline_s = INFINITY;
  double best_alone_s = INFINITY;  ///< time of the best baseline that sends each gradient alone
};

/// Plans as hipress-plan does: takes a baseline instead of the search's plan if it is faster.
Compared plan_and_compare(RandomProblem& random, sim::Network network, std::int64_t evaluations) {
  Problem problem = random.problem(network);
  problem.grouping = Grouping::kAny;
  problem.limits.evaluations = evaluations;
  const SearchResult found = search_timeline(problem);
  Compared compared = {.planned_s = simulated_iteration_s(problem.model, found.plan,
                                                          random.machines, found.transfer_order)};
  const std::vector<Baseline> baselines = simulate_baselines(problem, random.machines);
  for (const Baseline& baseline : baselines) {
    if (!may_be_plan(problem, baseline.plan)) continue;
    const double time_s = baseline.iteration_s.value();
    compared.best_baseline_s = std::min(compared.best_baseline_s, time_s);
    const BaselineRow& row = *find_baseline(baseline.name);
    if (!row.grouped && row.topology.empty()) {
      compared.best_alone_s = std::min(compared.best_alone_s, time_s);
    }
  }
  if (const Baseline* faster = faster_baseline(problem, baselines, compared.planned_s)) {
    compared.planned_s = faster->iteration_s.value();
  }
  return compared;
}

/// Numbers of instances in which the plan is at least 5 % faster than every baseline.
struct ClearWins {
  int all = 0;
  int alone = 0;  ///< only against baselines that send each gradient alone
};

/// Plans instances `first` to `last` - 1, and checks that no plan is slower than a baseline.
ClearWins clear_wins(std::uint64_t first, std::uint64_t last, const RandomProblem::Range& range) {
  ClearWins wins;
  for (std::uint64_t seed = first; seed < last; ++seed) {
    RandomProblem random(seed, range);
    const Compared compared = plan_and_compare(random, sim::Network::kPort, 1000);
    CAPTURE(seed);
    CHECK(compared.planned_s <= compared.best_baseline_s);
    wins.all += compared.planned_s * 1.05 <= compared.best_baseline_s;
    wins.alone += compared.planned_s * 1.05 <= compared.best_alone_s;
  }
  return wins;
}

TEST_CASE("random instances get plans not worse than any baseline, and often clearly better",
          "[slow]") {
  const ClearWins wins = clear_wins(0, 40, {.most_gradients = 40, .most_nodes = 16});
  CHECK(5 * wins.all >= 40);
  CHECK(4 * wins.alone >= 40);
}

TEST_CASE("a thousand random instances get plans not worse than any baseline", "[long]") {
  const ClearWins wins = clear_wins(0, 1000, {});
  CHECK(8 * wins.all >= 1000);
  CHECK(4 * wins.alone >= 1000);
}

TEST_CASE("plans do not depend on the number of jobs, and on the seed alone") {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    RandomProblem random(seed, {.most_gradients = 30, .most_nodes = 8});
    Problem problem = random.problem(sim::Network::kPort);
    problem.grouping = Grouping::kAny;
    problem.topology = "best";
    problem.limits.evaluations = 500;
    problem.limits.seed = seed;
    const SearchResult one = search_timeline(problem);
    problem.limits.jobs = 3;
    const SearchResult three = search_timeline(problem);
    CHECK(same(one.plan, three.plan));
    CHECK(one.evaluations == three.evaluations);
    CHECK(one.transfer_order == three.transfer_order);
  }
}

TEST_CASE("more evaluations never give a slower plan on network port") {
  for (std::uint64_t seed = 100; seed < 106; ++seed) {
    RandomProblem random(seed, {.most_gradients = 12, .most_nodes = 8});
    Problem problem = random.problem(sim::Network::kPort);
    problem.limits.evaluations = 300;
    const auto time = [&] {
      return simulated_iteration_s(problem.model, search_timeline(problem).plan, random.machines);
    };
    const double few = time();
    problem.limits.evaluations = 3000;
    CHECK(time() <= few * 1.001);  // other draws, so small losses are possible
  }
}

TEST_CASE("an interrupted search returns a plan") {
  RandomProblem random(7, {});
  Problem problem = random.problem(sim::Network::kPort);
  const std::atomic<bool> interrupted = true;
  problem.limits.budget_s = 1000;
  problem.limits.interrupted = &interrupted;
  const SearchResult found = search_timeline(problem);
  CHECK(found.plan.decisions.size() == problem.model.gradients.size());
  CHECK_FALSE(found.complete);
}

TEST_CASE("without machines there is nothing to simulate") {
  RandomProblem random(7, {});
  Problem problem = random.problem(sim::Network::kPort);
  problem.machines = nullptr;
  CHECK_THROWS_AS(search_timeline(problem), std::invalid_argument);
}

TEST_CASE("what there is to choose from lists every baseline") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RandomProblem random(seed, {});
    const Problem problem = random.problem(sim::Network::kPort);
    const Choices choices = make_choices(problem);
    for (const BaselineRow& row : baselines()) {
      const casync::Plan plan = row.make(problem);
      for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
        const auto named = [](const auto& algorithms, std::int8_t index) {
          return index == casync::kRaw ? std::string()
                                       : algorithms[static_cast<std::size_t>(index)].name;
        };
        const casync::Decision& wanted = plan.decisions[g];
        const auto& options = choices.gradients[g];
        CAPTURE(seed, row.name, g);
        CHECK(std::any_of(options.begin(), options.end(), [&](const casync::Decision& option) {
          return option.partitions == wanted.partitions &&
                 named(choices.algorithms, option.algorithm) ==
                     named(plan.algorithms, wanted.algorithm);
        }));
      }
    }
  }
}

TEST_CASE("options begin with what sends a gradient as it is, and K keeps slices of 32 elements") {
  models::Model model;
  model.gradients = {{.name = "tiny", .elements = 5},
                     {.name = "small", .elements = 200},
                     {.name = "large", .elements = 1 << 22},
                     {.name = "half", .elements = 1 << 22, .dtype = models::Dtype::kFloat16}};
  const Problem problem = {.model = model, .nodes = 8, .algorithms = {"onebit"}};
  const Choices choices = make_choices(problem);
  const auto of = [&](std::size_t g, int algorithm) {
    std::vector<int> partitions;
    for (const casync::Decision& option : choices.gradients[g]) {
      if (option.algorithm == algorithm) partitions.push_back(option.partitions);
    }
    std::sort(partitions.begin(), partitions.end());
    return partitions;
  };
  CHECK(choices.algorithms[0].name == "onebit");
  CHECK(choices.gradients[0].front().algorithm == casync::kRaw);
  CHECK(of(0, casync::kRaw) == std::vector{1, 8});  // 8 comes from the baselines
  // A slice has 200/4 elements, but 200/8 would be fewer than 32.
  CHECK(of(1, casync::kRaw) == std::vector{1, 2, 4, 8});
  CHECK(of(2, casync::kRaw) == std::vector{1, 2, 4, 8, 16, 32});
  CHECK(of(3, casync::kRaw).empty());
  const auto first = static_cast<std::size_t>(choices.gradients[3].front().algorithm);
  CHECK(choices.algorithms[first].name == "fp16");
  CHECK(choices.schemes.size() == 1);
}

TEST_CASE("algorithms are ordered by how much of a gradient they give up") {
  const std::vector<std::string> all = {"dgc", "onebit", "tbq(tau=0.1)", "fp16"};
  CHECK(AccuracyOrder{}.not_coarser(all, "graddrop") == all);
  CHECK(AccuracyOrder{}.not_coarser(all, "onebit") ==
        std::vector<std::string>{"onebit", "tbq(tau=0.1)", "fp16"});
  CHECK(AccuracyOrder{}.not_coarser(all, "bf16") == std::vector<std::string>{"fp16"});
  CHECK(AccuracyOrder{}.not_coarser(all, "none").empty());
  CHECK_THROWS_AS(AccuracyOrder{}.not_coarser(all, "onebot"), std::invalid_argument);
}

}  // namespace
}  // namespace hipress::planner
