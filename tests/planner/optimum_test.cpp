#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <vector>

#include "planner/bound/bound.hpp"
#include "planner/search/timeline_search.hpp"
#include "tests/planner/brute_force.hpp"
#include "tests/planner/random_instance.hpp"
#include "tests/planner/random_problem.hpp"

namespace hipress::planner {
namespace {

/// Time of the fastest plan, with every plan simulated separately by sim::simulate().
double least_simulated_s(const RandomInstance& instance) {
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

TEST_CASE("brute force with shared timelines finds the time of brute force without") {
  const Features even = {
      .uneven = false, .layered = false, .most_nodes = 6, .most_gradients = 3, .most_options = 4};
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const RandomInstance instance(seed, even);
    CAPTURE(seed);
    const Problem problem = instance.problem();
    const Fastest fastest(problem, instance.choices());
    CHECK(fastest.iteration_s() == least_simulated_s(instance));
    CHECK(instance.iteration_s(fastest.candidate().scheme, fastest.candidate().options) ==
          fastest.iteration_s());
  }
}

TEST_CASE("brute force goes through every plan once") {
  // Each of 3 gradients is raw or takes one of 3 algorithms, with K = 1 or N: 8³ plans.
  RandomProblem random(4, {.least_gradients = 3, .most_gradients = 3, .most_nodes = 4});
  // Large enough for N slices.
  for (auto& gradient : random.model.gradients) gradient.elements += 1024;
  const Problem problem = random.problem(sim::Network::kPort);
  const Choices choices = few_choices(problem);
  for (const auto& options : choices.gradients) CHECK(options.size() == 8);
  CHECK(Fastest(problem, choices).plans() == 512);
  random.model.gradients.clear();
  random.model.forward_s = 1;
  const Problem empty = random.problem(sim::Network::kPort);
  const Choices none = few_choices(empty);
  const Fastest fastest(empty, none);
  CHECK(fastest.plans() == 1);
  CHECK(fastest.iteration_s() == 1);
  CHECK(lower_bound(empty.model, random.machines, none).seconds == Approx(1));
}

/// Checks the bound, with and without branches, against the fastest plan.
void check_bounds(std::uint64_t first, std::uint64_t count, const Features& features) {
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const RandomInstance instance(seed, features);
    CAPTURE(seed);
    const Problem problem = instance.problem();
    const double best_s = Fastest(problem, instance.choices()).iteration_s();
    CHECK(lower_bound(instance.model(), instance.machines(), instance.choices()).seconds <= best_s);
    CHECK(lower_bound(instance.model(), instance.machines(), instance.choices(),
                      {.branch_nodes = 50, .known_s = best_s})
              .seconds <= best_s);
  }
}

TEST_CASE("the bound is never above the fastest plan of random instances", "[slow]") {
  check_bounds(500, 40, {.most_nodes = 8, .most_gradients = 4, .most_options = 3});
}

TEST_CASE("the bound is never above the fastest plan of 300 random instances", "[long]") {
  check_bounds(
      20000, 150,
      {.uneven = false, .layered = false, .most_nodes = 8, .most_gradients = 6, .most_options = 2});
  check_bounds(30000, 150, {.most_nodes = 8, .most_gradients = 4, .most_options = 4});
}

/// Counts instances by how much slower the search's plan is than the fastest plan.
struct Shortfall {
  int instances = 0;
  int near = 0;  ///< instances whose plan is at most 0.5 % slower
};

Shortfall shortfall(std::uint64_t first, std::uint64_t last, const RandomProblem::Range& range) {
  Shortfall all;
  for (std::uint64_t seed = first; seed < last; ++seed) {
    RandomProblem random(seed, range);
    Problem problem = random.problem(sim::Network::kPort);
    problem.limits.evaluations = 2000;
    const Choices choices = few_choices(problem);
    const double found_s = simulated_iteration_s(
        problem.model, search_timeline(problem, choices).plan, random.machines);
    const double best_s = Fastest(problem, choices).iteration_s();
    const double above = (found_s - best_s) / best_s;
    CAPTURE(seed, found_s, best_s);
    CHECK(above >= 0);
    CHECK(above <= 0.02);
    ++all.instances;
    all.near += above <= 0.005;
  }
  return all;
}

TEST_CASE("the search finds plans near the fastest of random instances", "[slow]") {
  const Shortfall found =
      shortfall(0, 40, {.least_gradients = 1, .most_gradients = 4, .most_nodes = 8});
  CHECK(found.near == found.instances);
}

TEST_CASE("the search is within 0.5 % of the fastest plan of 300 random instances", "[long]") {
  const Shortfall found =
      shortfall(0, 300, {.least_gradients = 3, .most_gradients = 5, .most_nodes = 16});
  CHECK(1000 * found.near >= 995 * found.instances);
}

}  // namespace
}  // namespace hipress::planner
