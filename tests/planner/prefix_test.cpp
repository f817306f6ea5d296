#include <catch2/catch.hpp>
#include <random>

#include "planner/prefix_search.hpp"
#include "tests/planner/random_problem.hpp"

namespace hipress::planner {
namespace {

/// A random plan, prefix by prefix: each one's bound is not above what the plan takes, and the
/// simulation in stages ends when one run does. Returns how near the bounds come: sums of bounds
/// and of times.
std::pair<double, double> check_prefixes(const Problem& problem, std::uint64_t seed) {
  const Choices choices = make_choices(problem);
  Evaluator evaluator(problem, choices);
  const ReadyTimes ready = ready_times(problem.model, problem.machines->cluster);
  const auto work = least_work(problem.model, *problem.machines, choices, choices.shapes[0], ready);
  PrefixBound bound(evaluator, 0, ready, work);
  REQUIRE(bound.prepare(kNever));
  std::mt19937_64 draws(seed);
  std::pair<double, double> sums = {0, 0};
  Candidate candidate = {0, std::vector<std::uint16_t>(ready.order.size())};
  for (std::size_t place = 0; place < ready.order.size(); ++place) {
    candidate.options[ready.order[place]] =
        static_cast<std::uint16_t>(draws() % bound.options(place).size());
  }
  Timeline timeline;
  const Schedule whole = evaluator.whole(candidate);
  const std::int64_t time = timeline.run(whole);
  Schedule prefix = whole;
  prefix.units.clear();
  TimelineState state = Timeline::beginning(whole.orbits);
  for (std::size_t place = 0; place < whole.units.size(); ++place) {
    CAPTURE(place);
    const PrefixOption& option = bound.options(place)[candidate.options[ready.order[place]]];
    bound.push(option);
    prefix.units.push_back(whole.units[place]);
    CHECK(option.pattern == whole.units[place].pattern);
    CHECK(bound.at_least(state) <= time);
    const bool last = place + 1 == whole.units.size();
    if (last || whole.units[place + 1].ready == whole.units[place].ready) continue;
    state = timeline.advance(prefix, state, whole.units[place + 1].ready);
    const std::int64_t at_least = bound.at_least(state);
    CHECK(at_least <= time);
    sums.first += static_cast<double>(at_least);
    sums.second += static_cast<double>(time);
  }
  CHECK(timeline.finish(prefix, state, kNever) == time);
  CHECK(timeline.finish(prefix, state, time - 1) == kNever);
  return sums;
}

TEST_CASE("What is left behind a prefix is not bounded above what plans with it take") {
  double bounds = 0, times = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RandomProblem random(seed, {.least_gradients = 1, .most_gradients = 10, .most_nodes = 8});
    if (seed % 4 == 0) random.profile.merge = {};  // rounds of one instant
    if (seed % 5 == 0) random.model.forward_s = 1e-3;
    if (seed % 6 == 0) {
      for (auto& gradient : random.model.gradients) gradient.ready_s = seed % 4 == 0 ? 0 : 1e-3;
    }
    if (seed % 7 == 0) {
      random.machines.cluster.gpus_per_node = 4;
      random.machines.cluster.gpu_link = {2e-6, 20e9};
      random.machines.cluster.compute_speed.assign(random.machines.cluster.nodes, 0.75);
    }
    Problem problem = random.problem(sim::Network::kPort);
    if (seed % 3 == 0) problem.transfer_order = OrderChoice::kNeed;
    CAPTURE(seed);
    const auto [bound, time] = check_prefixes(problem, seed);
    bounds += bound;
    times += time;
  }
  CHECK(bounds > 0.5 * times);
}

}  // namespace
}  // namespace hipress::planner
