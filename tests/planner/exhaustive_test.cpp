#include "planner/search/exhaustive.hpp"

#include <fmt/format.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <limits>
#include <vector>

#include "planner/bound/bound.hpp"
#include "planner/search/timeline_search.hpp"
#include "tests/planner/random_instance.hpp"
#include "tests/planner/random_problem.hpp"
#include "tests/planner/tool_run.hpp"

namespace hipress::planner {
namespace {

/// Simulates every plan.
double brute_force(const RandomInstance& instance) {
  const Choices& choices = instance.choices();
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t scheme = 0; scheme < choices.schemes.size(); ++scheme) {
    std::vector<std::uint16_t> options(choices.gradients.size(), 0);
    for (std::size_t g = 0; g < options.size();) {
      best = std::min(best, instance.iteration_s(scheme, options));
      for (g = 0; g < options.size() && ++options[g] == choices.gradients[g].size(); ++g) {
        options[g] = 0;
      }
    }
  }
  return best;
}

TEST_CASE("branch and bound finds what simulating every plan finds", "[slow]") {
  const Features small = {.most_nodes = 8, .most_gradients = 4, .most_options = 4};
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const RandomInstance instance(seed, small);
    INFO("seed " << seed);
    const double best = brute_force(instance);
    const Optimum optimum = find_optimum(instance.problem(), instance.choices());
    CHECK(optimum.iteration_s == best);
    CHECK(instance.iteration_s(optimum.candidate.scheme, optimum.candidate.options) == best);
    CHECK(lower_bound(instance.model(), instance.machines(), instance.choices()).seconds <= best);
  }
}

/// The same with the planner's own simulation, which is faster.
std::int64_t brute_force_on_port(const Problem& problem, const Choices& choices) {
  Evaluator evaluator(problem, choices);
  PatternSimulator timeline;
  std::int64_t best = kNever;
  Candidate candidate = {0, std::vector<std::uint16_t>(choices.gradients.size(), 0)};
  for (std::size_t g = 0; g < candidate.options.size();) {
    best = std::min(best, timeline.run(evaluator.exact(candidate), best));
    for (g = 0; g < candidate.options.size(); ++g) {
      if (++candidate.options[g] < choices.gradients[g].size()) break;
      candidate.options[g] = 0;
    }
  }
  return best;
}

TEST_CASE("prefixes find what simulating every plan of eight options finds") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    RandomProblem random(seed, {.least_gradients = 2, .most_gradients = 3, .most_nodes = 8});
    Problem problem = random.problem(sim::Network::kPort);
    if (seed % 3 == 0) problem.transfer_order = OrderChoice::kNeed;
    const Choices choices = exhaustive_choices(problem);
    CAPTURE(seed);
    const std::int64_t best = brute_force_on_port(problem, choices);
    CHECK(find_optimum(problem, choices).iteration_s ==
          casync::to_seconds(casync::Picoseconds(best)));
  }
}

TEST_CASE("the optimum does not depend on the number of threads") {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    RandomProblem random(seed, {.least_gradients = 4, .most_gradients = 6, .most_nodes = 8});
    if (seed % 2 == 0) {
      for (auto& gradient : random.model.gradients) gradient.elements /= 1000;  // many alike
      for (auto& gradient : random.model.gradients) gradient.elements += 32;
    }
    Problem problem = random.problem(sim::Network::kPort);
    const Choices choices = exhaustive_choices(problem);
    const Optimum one = find_optimum(problem, choices);
    problem.limits.jobs = 3;
    const Optimum three = find_optimum(problem, choices);
    CAPTURE(seed);
    CHECK(one.candidate == three.candidate);
    CHECK(one.iteration_s == three.iteration_s);
  }
}

/// The bound, with and without branches, against the proven optimum.
void check_against_optimum(std::uint64_t first, std::uint64_t count, const Features& features) {
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const RandomInstance instance(seed, features);
    INFO("seed " << seed);
    const double best = find_optimum(instance.problem(), instance.choices()).iteration_s;
    CHECK(lower_bound(instance.model(), instance.machines(), instance.choices()).seconds <= best);
    CHECK(lower_bound(instance.model(), instance.machines(), instance.choices(),
                      {.branch_nodes = 50, .known_s = best})
              .seconds <= best);
  }
}

TEST_CASE("the bound is never above the optimum of random instances", "[slow]") {
  check_against_optimum(500, 25, {.most_gradients = 5, .most_options = 4});
}

TEST_CASE("the bound is never above the optimum of 300 random instances", "[long]") {
  check_against_optimum(20000, 150, {.uneven = false, .layered = false, .most_options = 3});
  // Where the bound leaves things out, more plans have to be simulated.
  check_against_optimum(30000, 150, {.most_gradients = 5, .most_options = 4});
}

/// How far above the proven optimum the search's plans of some random instances are: relative.
struct Shortfall {
  int instances = 0;
  int near = 0;  ///< at most 0.5 %
  double most = 0;
};

/// The search alone, among the plans that the exhaustive search goes through.
Shortfall shortfall(std::uint64_t first, std::uint64_t last, const RandomProblem::Range& range) {
  Shortfall all;
  for (std::uint64_t seed = first; seed < last; ++seed) {
    RandomProblem random(seed, range);
    Problem problem = random.problem(sim::Network::kPort);
    problem.limits.evaluations = 5000;
    const Choices choices = exhaustive_choices(problem);
    const double found_s = simulated_iteration_s(
        problem.model, search_timeline(problem, choices).plan, random.machines);
    const double best_s = find_optimum(problem, choices).iteration_s;
    const double above = (found_s - best_s) / best_s;
    CAPTURE(seed, found_s, best_s);
    CHECK(above >= 0);
    CHECK(above <= 0.02);
    ++all.instances;
    all.near += above <= 0.005;
    all.most = std::max(all.most, above);
  }
  return all;
}

TEST_CASE("the search alone finds plans near the optimum of random instances", "[slow]") {
  const Shortfall found =
      shortfall(0, 40, {.least_gradients = 1, .most_gradients = 6, .most_nodes = 8});
  CHECK(found.near == found.instances);
}

TEST_CASE("the search alone is within 0.5 % of the optimum of 300 random instances", "[long]") {
  const Shortfall found =
      shortfall(0, 300, {.least_gradients = 1, .most_gradients = 8, .most_nodes = 16});
  CHECK(1000 * found.near >= 995 * found.instances);
}

models::Model equal_gradients(std::size_t count) {
  models::Model model;
  for (std::size_t g = 0; g < count; ++g) {
    model.gradients.push_back({.name = fmt::format("g{}", g),
                               .elements = 1 << 20,
                               .ready_s = 1e-3 * static_cast<double>(g)});
  }
  return model;
}

TEST_CASE("an interrupted search returns a plan, and calls it proven only where it is the best") {
  const std::atomic<bool> interrupted = true;
  int cut_short = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    for (const sim::Network network : {sim::Network::kPort, sim::Network::kFair}) {
      CAPTURE(seed, network == sim::Network::kFair);
      RandomProblem random(seed, {.least_gradients = 4, .most_gradients = 4, .most_nodes = 4});
      Problem problem = random.problem(network);
      const Choices choices = exhaustive_choices(problem);
      const Optimum best = find_optimum(problem, choices);
      CHECK(best.proven);
      problem.limits.interrupted = &interrupted;
      const Optimum found = find_optimum(problem, choices);
      REQUIRE(found.candidate.options.size() == 4);
      CHECK(found.simulated <= best.simulated);
      CHECK(found.iteration_s >= best.iteration_s);
      if (found.proven) CHECK(found.iteration_s == best.iteration_s);
      const SearchResult result = search_exhaustive(problem);
      CHECK(result.complete == found.proven);
      const bool says_so = result.diagnostics.front().starts_with("not proved to be the best of ");
      CHECK(says_so == !found.proven);
      cut_short += found.proven ? 0 : 1;
    }
  }
  CHECK(cut_short > 0);
}

TEST_CASE("three algorithms give eight options, and too many gradients are refused") {
  const costs::Profile profile = costs::read_profile("v100-100g");
  const Machines machines = {profile, costs::cluster_from_profile(profile, 4), sim::Network::kPort};
  const auto problem = [&](const models::Model& model) {
    return Problem{.model = model,
                   .nodes = 4,
                   .algorithms = {"onebit", "tbq", "fp16"},
                   .profile = &profile,
                   .machines = &machines};
  };
  const models::Model twelve = equal_gradients(12);
  const Choices choices = exhaustive_choices(problem(twelve));
  for (const auto& options : choices.gradients) CHECK(options.size() == 8);
  CHECK(count_plans(choices) == kMaxPlans);  // 8^12

  const models::Model thirteen = equal_gradients(13);
  CHECK_THROWS_WITH(search_exhaustive(problem(thirteen)),
                    Catch::Contains("at most 6.9e+10 plans") && Catch::Contains("years") &&
                        Catch::Contains("`search` timeline"));
}

TEST_CASE("an exhaustive search of eight gradients beats every baseline that it may choose") {
  const costs::Profile profile = costs::read_profile("v100-100g");
  const Machines machines = {profile, costs::cluster_from_profile(profile, 4), sim::Network::kPort};
  const models::Model model = equal_gradients(8);
  const Problem problem = {.model = model,
                           .nodes = 4,
                           .algorithms = {"onebit", "tbq", "fp16"},
                           .profile = &profile,
                           .machines = &machines};
  const SearchResult found = search_exhaustive(problem);
  const double best = simulated_iteration_s(model, found.plan, machines);
  for (const std::int8_t algorithm : {-1, 0, 1, 2}) {
    for (const std::int32_t k : {1, 4}) {
      casync::Plan plan = found.plan;
      for (casync::Decision& decision : plan.decisions) decision = {algorithm, k};
      CHECK(best <= simulated_iteration_s(model, plan, machines));
    }
  }
}

TEST_CASE("hipress-plan --search exhaustive plans small models and refuses large ones", "[tool]") {
  const Workplace place;
  place.write("small.csv", "name,elements,ready_us\na,1000000,10\nb,64,20\n");
  const ToolRun done =
      place.run("hipress-plan --input small.csv --nnodes 4 --search exhaustive --json");
  CHECK(done.status == 0);
  const ToolRun limited = place.run(
      "hipress-plan --input small.csv --nnodes 4 --search exhaustive --budget 5 --evaluations 9");
  CHECK(limited.status == 0);
  CHECK_THAT(limited.err, Catch::Contains("--budget is for the passes alone") &&
                              Catch::Contains("--evaluations is for the passes alone") &&
                              Catch::Contains("the best of "));
  const ToolRun refused = place.run("hipress-plan --input vgg19 --nnodes 4 --search exhaustive");
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, Catch::Contains("--search exhaustive is for at most 6.9e+10 plans"));
}

TEST_CASE("a model without gradients has one plan") {
  const costs::Profile profile = costs::read_profile("v100-100g");
  const Machines machines = {profile, costs::cluster_from_profile(profile, 4), sim::Network::kPort};
  models::Model model;
  model.forward_s = 1;
  const Problem problem = {.model = model,
                           .nodes = 4,
                           .algorithms = {"onebit"},
                           .profile = &profile,
                           .machines = &machines};
  CHECK(find_optimum(problem, exhaustive_choices(problem)).iteration_s == 1);
  CHECK(lower_bound(model, machines, exhaustive_choices(problem)).seconds == Approx(1));
}

}  // namespace
}  // namespace hipress::planner
