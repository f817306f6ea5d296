#include "planner/bound/visits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "planner/bound/bound.hpp"
#include "planner/bound/work_maker.hpp"
#include "planner/search/timeline_search.hpp"
#include "tests/planner/brute_force.hpp"
#include "tests/planner/few_large.hpp"

namespace hipress::planner {
namespace {

TEST_CASE("a preemptive schedule does first what has the longest tail") {
  // A has 4 units of work from 0 on and a tail of 1; B has 3 units from 2 on and a tail of 5. A
  // runs 0–2, B 2–5, A 5–7. B's tail ends at 10, A's at 8.
  std::vector<Visit> visits = {{0, 4, 1}, {2, 3, 5}};
  CHECK(preemptive_end(visits) == 10);
  // The visits do not overlap: they run 1–2 and 3–4, and a tail of 2 follows.
  visits = {{3, 1, 2}, {1, 1, 0}};
  CHECK(preemptive_end(visits) == 6);
  visits = {};
  CHECK(preemptive_end(visits) == 0);
}

/// Lower bound of VisitBound alone, in seconds, for the first scheme. No plan is known, so the time
/// of the best known one is 1e18 ps.
double by_visits_s(const Problem& problem, const Choices& choices) {
  const ReadyTimes ready = ready_times(problem.model, problem.machines->cluster);
  const auto work =
      least_work(problem.model, *problem.machines, choices, choices.schemes[0], ready);
  VisitBound visits(problem.model, *problem.machines, choices, choices.schemes[0], ready, work, 1);
  return visits.least(1e18, 1'000'000) * 1e-12;
}

TEST_CASE("no bound is above the optimum of models with few large gradients") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const FewLarge instance(seed, sim::Network::kPort, 4, 6);
    CAPTURE(seed, instance.describe());
    const Problem problem = instance.problem();
    const Choices choices = few_choices(problem);
    const double best_s = Fastest(problem, choices).iteration_s();
    const double visits_s = by_visits_s(problem, choices);
    CHECK(visits_s <= best_s);
    CHECK(visits_s >= 0.7 * best_s);
    CHECK(lower_bound(problem.model, *problem.machines, choices, {.branch_nodes = 30}).seconds <=
          best_s);
  }
}

TEST_CASE("no bound is above plans of few large gradients whose flows share links") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const FewLarge instance(seed, sim::Network::kFair, 6, 8);
    CAPTURE(seed, instance.describe());
    const Problem problem = instance.problem();
    const Choices choices = make_choices(problem);
    const double bound_s = by_visits_s(problem, choices);
    std::vector<std::uint16_t> options(choices.gradients.size());
    std::mt19937_64 draws(seed);
    for (int i = 0; i < 10; ++i) {
      for (std::size_t g = 0; g < options.size(); ++g) {
        options[g] = static_cast<std::uint16_t>(draws() % choices.gradients[g].size());
      }
      const casync::Plan plan = make_plan(problem, choices, 0, options);
      const double plan_s = simulated_iteration_s(problem.model, plan, *problem.machines);
      CHECK(bound_s <= plan_s);
      Choices only = choices;
      for (std::size_t g = 0; g < options.size(); ++g) {
        only.gradients[g] = {choices.gradients[g][options[g]]};
      }
      CHECK(by_visits_s(problem, only) <= plan_s);
    }
  }
}

/// Checks bounds against random plans with groups and batches, for models with few gradients.
void check_plans_in_groups(std::uint64_t first_seed, std::uint64_t last_seed) {
  for (std::uint64_t seed = first_seed; seed <= last_seed; ++seed) {
    const FewLarge instance(seed, seed % 2 == 0 ? sim::Network::kFair : sim::Network::kPort, 6, 8);
    CAPTURE(seed, instance.describe());
    Problem problem = instance.problem();
    problem.grouping = Grouping::kAny;
    const Choices choices = make_choices(problem);
    const Machines& machines = *problem.machines;
    const ReadyTimes ready = ready_times(problem.model, machines.cluster);
    const auto bound_s = [&](const Choices& of, VisitBound::Groups groups) {
      const auto work = least_work(problem.model, machines, of, of.schemes[0], ready);
      VisitBound visits(problem.model, machines, of, of.schemes[0], ready, work, 1, groups);
      return visits.least(1e18, 100'000) * 1e-12;
    };
    const double of_all_s =
        lower_bound(problem.model, machines, choices, {.branch_nodes = 5}).seconds;
    std::mt19937_64 draws(seed);
    for (int i = 0; i < 12; ++i) {
      std::vector<std::uint16_t> options(choices.gradients.size());
      Choices only = choices;
      const std::size_t scheme = draws() % choices.schemes.size();
      only.schemes = {choices.schemes[scheme]};
      // Most gradients take the same option, so that groups form.
      const std::uint64_t most = draws();
      for (std::size_t g = 0; g < options.size(); ++g) {
        const std::uint64_t drawn = draws() % 4 == 0 ? draws() : most;
        options[g] = static_cast<std::uint16_t>(drawn % choices.gradients[g].size());
        only.gradients[g] = {choices.gradients[g][options[g]]};
      }
      CAPTURE(scheme, options);
      const casync::Plan plan = make_plan(problem, choices, scheme, options);
      const double plan_s = simulated_iteration_s(problem.model, plan, machines,
                                                  choices.schemes[scheme].transfer_order);
      const double any_s = bound_s(only, VisitBound::Groups::kAny);
      const double by_rule_s = bound_s(only, VisitBound::Groups::kByRule);
      CHECK(any_s <= plan_s * (1 + 1e-9));
      CHECK(by_rule_s <= plan_s * (1 + 1e-9));
      CHECK(by_rule_s >= 0.3 * plan_s);
      CHECK(of_all_s <= plan_s);
    }
  }
}

TEST_CASE("no bound is above plans in groups and batches", "[slow]") {
  check_plans_in_groups(1, 40);
}

TEST_CASE("no bound is above plans in groups and batches of 800 models", "[long]") {
  check_plans_in_groups(41, 840);
}

/// Four huge embeddings with small layers between them, as models of recommendation systems have.
TEST_CASE("plans of models of embeddings are bounded within 4 % in the median, 10 % at p90",
          "[slow]") {
  models::Model model;
  model.name = "embeddings";
  const std::vector<std::pair<std::int64_t, double>> layers = {
      {256, 25e-6},      {8192, 75e-6},       {32768, 125e-6},    {65536, 200e-6},
      {3425280, 625e-6}, {17722112, 1250e-6}, {1712640, 1500e-6}, {8861056, 2000e-6}};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    model.gradients.push_back({.name = fmt::format("layer{}", i),
                               .elements = layers[i].first,
                               .ready_s = layers[i].second});
  }
  const costs::Profile profile = costs::read_profile("v100-100g");
  std::vector<double> gaps;
  for (const std::uint32_t nodes : {4u, 8u, 16u}) {
    for (const std::string topology : {"ps", "ring", "best"}) {
      Machines machines = {profile, costs::cluster_from_profile(profile, nodes),
                           sim::Network::kFair};
      machines.cluster.link.bandwidth = machines.cluster.link.bandwidth_both_ways = 1.25e9;
      const Problem problem = {.model = model,
                               .topology = topology,
                               .nodes = nodes,
                               .algorithms = {"onebit", "fp16"},
                               .profile = &profile,
                               .machines = &machines,
                               .grouping = Grouping::kAny,
                               .limits = {.evaluations = 2000}};
      const Choices choices = make_choices(problem);
      const SearchResult found = search_timeline(problem, choices);
      const double found_s =
          simulated_iteration_s(model, found.plan, machines, found.transfer_order);
      const double bound_s =
          lower_bound(model, machines, choices, {.branch_nodes = 30, .known_s = found_s}).seconds;
      CAPTURE(nodes, topology, found_s, bound_s);
      CHECK(bound_s <= found_s);
      gaps.push_back(gap(found_s, bound_s));
    }
  }
  std::ranges::sort(gaps);
  CAPTURE(gaps);
  CHECK(gaps[4] <= 0.04);
  CHECK(gaps[7] <= 0.10);
}

TEST_CASE("plans of few large gradients are bounded within 3 % in the median, 10 % at p90",
          "[slow]") {
  std::vector<double> gaps;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const FewLarge instance(seed, sim::Network::kFair);
    Problem problem = instance.problem();
    problem.limits.evaluations = 2000;
    const Choices choices = make_choices(problem);
    const SearchResult found = search_timeline(problem, choices);
    const double found_s = simulated_iteration_s(problem.model, found.plan, *problem.machines);
    const double bound_s = lower_bound(problem.model, *problem.machines, choices,
                                       {.branch_nodes = 30, .known_s = found_s})
                               .seconds;
    CHECK(bound_s <= found_s);
    gaps.push_back(gap(found_s, bound_s));
  }
  std::sort(gaps.begin(), gaps.end());
  CHECK(gaps[14] <= 0.03);
  CHECK(gaps[15] <= 0.03);
  CHECK(gaps[27] <= 0.10);
}

TEST_CASE("where everything is all-reduced, the bound is the fastest scheme's time") {
  FewLarge instance(3, sim::Network::kFair);
  Problem problem = instance.problem();
  problem.topology = "allreduce";
  problem.algorithms = {};
  problem.grouping = Grouping::kAny;
  const Choices choices = make_choices(problem);
  REQUIRE(choices.schemes.size() > 10);
  double best_s = 1e9;
  const std::vector<std::uint16_t> options(choices.gradients.size(), 0);
  for (std::size_t scheme = 0; scheme < choices.schemes.size(); ++scheme) {
    best_s = std::min(
        best_s, simulated_iteration_s(problem.model, make_plan(problem, choices, scheme, options),
                                      *problem.machines));
  }
  const double bound_s =
      lower_bound(problem.model, *problem.machines, choices, {.known_s = best_s}).seconds;
  CHECK(bound_s <= best_s);
  CHECK(bound_s >= best_s * (1 - 1e-6));
}

TEST_CASE("a plan of any topology without compression is bounded as well as each topology alone") {
  // Eight GPUs on two hosts. The GPUs of a host share one link.
  FewLarge instance(5, sim::Network::kFair, 8, 8);
  Problem problem = instance.problem();
  problem.algorithms = {};
  Machines machines = *problem.machines;
  machines.cluster = costs::cluster_from_profile(machines.profile, 8);
  machines.cluster.host_link = machines.cluster.link;
  machines.cluster.host_link->bandwidth *= 20;
  machines.cluster.host_link->bandwidth_both_ways *= 20;
  for (std::uint32_t node = 0; node < 8; ++node) machines.cluster.host[node] = node / 4;
  problem.machines = &machines;
  problem.nodes = 8;
  const auto bound_s = [&](const std::string& topology) {
    problem.topology = topology;
    return lower_bound(problem.model, machines, make_choices(problem), {.branch_nodes = 30})
        .seconds;
  };
  const double least_s = std::min({bound_s("ps"), bound_s("ring"), bound_s("allreduce")});
  const double best_s = bound_s("best");
  CHECK(best_s >= least_s * (1 - 1e-3));  // both bounds have a precision of 1e-4
  // Among H = 2 hosts, an all-reduce sends at least 2·(H−1)/H·S = S over each shared link.
  double bytes = 0;
  for (const models::Gradient& gradient : problem.model.gradients) {
    bytes += 4.0 * static_cast<double>(gradient.elements);
  }
  CHECK(bound_s("ring") >= bytes / machines.cluster.link.bandwidth);
}

}  // namespace
}  // namespace hipress::planner
