#include <catch2/catch.hpp>
#include <random>

#include "planner/bound/work_maker.hpp"
#include "planner/search/prefix_search.hpp"
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
  const auto work =
      least_work(problem.model, *problem.machines, choices, choices.schemes[0], ready);
  PrefixBound bound(evaluator, 0, ready, work);
  REQUIRE(bound.prepare(kNever));
  std::mt19937_64 draws(seed);
  std::pair<double, double> sums = {0, 0};
  Candidate candidate = {0, std::vector<std::uint16_t>(ready.order.size())};
  for (std::size_t place = 0; place < ready.order.size(); ++place) {
    candidate.options[ready.order[place]] =
        static_cast<std::uint16_t>(draws() % bound.options(place).size());
  }
  PatternSimulator timeline;
  const PatternGraph whole = evaluator.whole(candidate);
  const std::int64_t time = timeline.run(whole);
  PatternGraph prefix = whole;
  prefix.units.clear();
  TimelineState state = PatternSimulator::beginning(whole.representatives);
  for (std::size_t place = 0; place < whole.units.size(); ++place) {
    CAPTURE(place);
    const PrefixOption& option = bound.options(place)[candidate.options[ready.order[place]]];
    bound.push(option);
    prefix.units.push_back(whole.units[place]);
    prefix.units.back().tails = option.tails->data();
    CHECK(option.pattern == whole.units[place].pattern);
    CHECK(bound.at_least(state) <= time);
    const bool last = place + 1 == whole.units.size();
    if (last || whole.units[place + 1].ready == whole.units[place].ready) continue;
    const std::int64_t until = whole.units[place + 1].ready;
    auto after = timeline.advance(prefix, state, until, {time, bound.loads(state, time)});
    REQUIRE(after);  // not given up, since this plan takes no longer
    state = std::move(*after);
    const std::int64_t at_least = bound.at_least(state);
    CHECK(at_least <= time);
    sums.first += static_cast<double>(at_least);
    sums.second += static_cast<double>(time);
  }
  CHECK(timeline.finish(prefix, state, {}) == time);
  CHECK(timeline.finish(prefix, state, {time, bound.loads(state, time)}) == time);
  CHECK(timeline.finish(prefix, state, {time - 1, bound.loads(state, time - 1)}) == kNever);
  return sums;
}

TEST_CASE("what is left behind a prefix is not bounded above what plans with it take") {
  double bounds = 0, times = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RandomProblem random(seed, {.least_gradients = 1, .most_gradients = 10, .most_nodes = 8});
    if (seed % 4 == 0) random.profile.merge = {};  // rounds of one instant
    if (seed % 5 == 0) random.model.forward_s = 1e-3;
    if (seed % 10 == 0) random.model.micro_steps = 3;
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

TEST_CASE("a gradient alone is bounded by what its servers' queues do in their order") {
  costs::Profile profile;
  profile.name = "plain";
  profile.link = {.overhead_s = 20e-6, .bandwidth = 1e9, .bandwidth_both_ways = 1e9};
  profile.link.latency_s = 5e-6;
  const auto curve = [](double seconds) { return costs::Curve{{{0, seconds, 0}}, 0}; };
  profile.codecs["onebit"] = {curve(70e-6), curve(10e-6), curve(50e-6)};
  profile.codecs["fp16"] = profile.codecs["onebit"];  // to choose from, but not chosen
  profile.merge = curve(50e-6);
  const Machines machines = {profile, costs::cluster_from_profile(profile, 4), sim::Network::kPort};
  models::Model model;
  model.gradients.push_back({.name = "g", .elements = 4 * 32 * 1000, .ready_s = 1e-3});
  const Problem problem = {.model = model,
                           .topology = "ps",
                           .nodes = 4,
                           .algorithms = {"onebit"},
                           .profile = &profile,
                           .machines = &machines};
  Choices choices = make_choices(problem);
  for (auto& options : choices.gradients) options = {{0, 4}};  // onebit, K = N
  Evaluator evaluator(problem, choices);
  const ReadyTimes ready = ready_times(model, machines.cluster);
  const auto work = least_work(model, machines, choices, choices.schemes[0], ready);
  PrefixBound bound(evaluator, 0, ready, work);

  // Every node encodes for 3 servers, before the first sum can begin; as server it adds 3 slices
  // and encodes the mean. Its 3 messages take longer than decoding them, so the last one decides.
  const std::int64_t bytes = choices.algorithms[0].encoded_bytes(32 * 1000);
  const double message_s = 20e-6 + static_cast<double>(bytes) / 1e9;
  const double end_s = 1e-3 + 3 * 70e-6 + 3 * 50e-6 + 70e-6 + 3 * message_s + 5e-6 + 10e-6;
  CHECK(bound.options(0)[0].end * 1e-12 == Approx(end_s).epsilon(1e-9));
  const PatternGraph whole = evaluator.whole({0, {0}});
  CHECK(static_cast<double>(PatternSimulator().run(whole)) * 1e-12 == Approx(end_s).epsilon(1e-9));
}

}  // namespace
}  // namespace hipress::planner
