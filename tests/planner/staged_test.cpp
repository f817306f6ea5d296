#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "casync/folding.hpp"
#include "casync/topology.hpp"
#include "io/error.hpp"
#include "planner/baselines/baselines.hpp"
#include "planner/baselines/ddp.hpp"
#include "planner/bound/bound.hpp"
#include "planner/rules/secopa.hpp"
#include "planner/search/passes/runner.hpp"
#include "planner/search/timeline_search.hpp"
#include "planner/timing/evaluator.hpp"
#include "planner/timing/workbench.hpp"
#include "tests/planner/brute_force.hpp"
#include "tests/planner/random_matrices.hpp"
#include "tests/planner/tool_run.hpp"

namespace hipress::planner {
namespace {

std::int64_t simulated(const Problem& problem, const Choices& choices, const Candidate& candidate,
                       casync::Folding folding = casync::Folding::kNone) {
  const casync::Plan plan = make_plan(problem, choices, candidate.scheme, candidate.options);
  const sim::TaskCosts costs(*problem.profile, plan.algorithms);
  return sim::simulate(casync::expand(problem.model, plan, folding), costs,
                       problem.machines->cluster,
                       {.network = problem.machines->network,
                        .transfer_order = choices.schemes[candidate.scheme].transfer_order})
      .iteration.count();
}

Candidate random_candidate(const Choices& choices, RandomMatrices& random) {
  Candidate candidate = {static_cast<std::uint32_t>(random.below(choices.schemes.size())), {}};
  for (const auto& options : choices.gradients) {
    candidate.options.push_back(static_cast<std::uint16_t>(random.below(options.size())));
  }
  return candidate;
}

bool sends_factors(const Choices& choices, const casync::Decision& decision) {
  return is_additive(casync::algorithm_at(choices.algorithms, decision.algorithm));
}

int count_staged(const Choices& choices, const Candidate& candidate) {
  int count = 0;
  for (std::size_t g = 0; g < candidate.options.size(); ++g) {
    count += sends_factors(choices, choices.gradients[g][candidate.options[g]]) ? 1 : 0;
  }
  return count;
}

Problem everything(RandomMatrices& random, std::uint64_t seed, sim::Network network) {
  Problem problem = random.problem(network);
  problem.grouping = Grouping::kAny;
  problem.transfer_order = OrderChoice::kBest;
  problem.topology = seed % 4 == 0 ? "allreduce" : "best";
  return problem;
}

TEST_CASE("exact timelines of stages end when the simulator says, to the picosecond") {
  PatternSimulator timeline;
  int staged = 0, folded = 0, grouped = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RandomMatrices random(seed, {.most_gradients = 12, .most_nodes = 16});
    // Free merges give an instant several rounds of events.
    if (seed % 5 == 0) random.profile().merge = {};
    if (seed % 3 == 0) {
      for (auto& gradient : random.model().gradients) gradient.ready_s = seed % 2 == 0 ? 0 : 1e-3;
    }
    if (seed % 7 == 0) random.cluster().compute_speed.assign(random.cluster().nodes, 0.75);
    const Problem problem = everything(random, seed, sim::Network::kPort);
    const Choices choices = make_choices(problem);
    Evaluator evaluator(problem, choices);
    REQUIRE(nodes_are_alike(problem.machines->cluster));
    for (int i = 0; i < 30; ++i) {
      const Candidate candidate = random_candidate(choices, random);
      if (!evaluator.can_be_exact(candidate)) continue;
      const PatternGraph schedule = evaluator.exact(candidate);
      staged += count_staged(choices, candidate);
      folded += schedule.representatives == 1 && count_staged(choices, candidate) > 0 ? 1 : 0;
      grouped += choices.schemes[candidate.scheme].bulk.threshold_bytes > 0 ? 1 : 0;
      CAPTURE(seed, i, candidate.scheme, problem.nodes, schedule.representatives);
      CHECK(timeline.run(schedule) == simulated(problem, choices, candidate));
    }
  }
  CHECK(staged > 500);
  CHECK(folded > 20);
  CHECK(grouped > 100);
}

TEST_CASE("a timeline with stages that begins or ends with another is as one from the start") {
  PatternSimulator fresh, reusing;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    RandomMatrices random(seed, {.least_gradients = 4, .most_gradients = 30, .most_nodes = 8});
    const Problem problem = everything(random, seed, sim::Network::kPort);
    const Choices choices = make_choices(problem);
    Evaluator evaluator(problem, choices);
    const Candidate start = random_candidate(choices, random);
    for (const bool coarse : {true, false}) {
      if (!coarse && !evaluator.can_be_exact(start)) continue;
      const auto schedule = [&](const Candidate& candidate) {
        return coarse ? evaluator.coarse(candidate) : evaluator.exact(candidate);
      };
      const Recording base = reusing.record(schedule(start));
      for (int i = 0; i < 25; ++i) {
        Candidate changed = start;
        for (int changes = 0; changes < 1 + i % 3; ++changes) {
          const std::size_t g = random.below(changed.options.size());
          changed.options[g] =
              static_cast<std::uint16_t>(random.below(choices.gradients[g].size()));
        }
        CAPTURE(seed, coarse, i);
        const std::int64_t time = fresh.run(schedule(changed));
        CHECK(reusing.run(schedule(changed), kNever, &base) == time);
        const std::int64_t limited = reusing.run(schedule(changed), base.iteration, &base);
        CHECK(limited == (time <= base.iteration ? time : kNever));
      }
    }
  }
}

/// Checks lower bounds on all plans, and on single plans, against simulations of random plans.
void check_bound(std::uint64_t first, std::uint64_t last, int plans) {
  for (std::uint64_t seed = first; seed < last; ++seed) {
    RandomMatrices random(seed, {.least_gradients = 1, .most_gradients = 8, .most_nodes = 16});
    const sim::Network network = seed % 2 == 0 ? sim::Network::kPort : sim::Network::kFair;
    if (seed % 5 == 0) random.cluster().compute_speed.back() = 0.6;
    if (seed % 7 == 0) random.cluster().compute_speed.assign(random.cluster().nodes, 1.7);
    if (seed % 6 == 1) random.cluster().link.bandwidth_both_ways *= 0.7;
    if (seed % 11 == 1) random.cluster().link.burst_bytes = 200'000;
    const Problem problem = everything(random, seed, network);
    const Choices choices = make_choices(problem);
    const double bound = lower_bound(problem.model, *problem.machines, choices).seconds;
    for (int i = 0; i < plans; ++i) {
      const Candidate candidate = random_candidate(choices, random);
      const double time_s =
          casync::to_seconds(casync::Picoseconds(simulated(problem, choices, candidate)));
      Choices one = choices;
      one.schemes = {choices.schemes[candidate.scheme]};
      for (std::size_t g = 0; g < one.gradients.size(); ++g) {
        one.gradients[g] = {choices.gradients[g][candidate.options[g]]};
      }
      const Scheme& scheme = one.schemes.front();
      CAPTURE(seed, i, scheme.topology, scheme.raw_topology, scheme.bulk.threshold_bytes,
              scheme.batch.threshold_bytes, problem.nodes);
      CHECK(bound <= time_s);
      CHECK(lower_bound(problem.model, *problem.machines, one).seconds <= time_s);
      CHECK(lower_bound(problem.model, *problem.machines, one, {.branch_nodes = 30}).seconds <=
            time_s);
    }
  }
}

TEST_CASE("the bound is below random plans with stages", "[slow]") { check_bound(0, 120, 6); }

TEST_CASE("the bound is below random plans with stages of 500 random instances", "[long]") {
  check_bound(1000, 1500, 10);
}

/// Gaps between fastest plans and their bounds, with low rank among the algorithms.
struct Gaps {
  int instances = 0;
  int better = 0;  ///< number of instances that are faster than without low rank
  double most = 0;
  double sum = 0;      ///< sum of gaps
  double without = 0;  ///< sum of gaps without low rank

  std::string describe() const {
    return fmt::format(
        "{} instances, low rank better in {}; gap mean {:.2f} % (without {:.2f} %), "
        "most {:.1f} %",
        instances, better, 100 * sum / instances, 100 * without / instances, 100 * most);
  }
};

double gap_of(const Problem& problem, const Choices& choices, double best_s) {
  CHECK(lower_bound(problem.model, *problem.machines, choices).seconds <= best_s);
  const double bound_s =
      lower_bound(problem.model, *problem.machines, choices, {.branch_nodes = 30}).seconds;
  CHECK(bound_s <= best_s);
  return gap(best_s, bound_s);
}

Gaps check_optima(std::uint64_t first, std::uint64_t count) {
  Gaps gaps;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    RandomMatrices random(seed, {.least_gradients = 1, .most_gradients = 3, .most_nodes = 8});
    Problem problem = random.problem(seed % 4 == 3 ? sim::Network::kFair : sim::Network::kPort);
    if (seed % 3 == 0) problem.topology = "allreduce";
    problem.algorithms = {"onebit", "powersgd(rank=1)", "powersgd(rank=4)"};
    const Choices choices = few_choices(problem);
    const double best_s = Fastest(problem, choices).iteration_s();
    CAPTURE(seed, problem.topology, problem.nodes);
    Problem sliced = problem;
    sliced.algorithms = {"onebit"};
    const Choices slices = few_choices(sliced);
    const double without_s = Fastest(sliced, slices).iteration_s();
    CHECK(best_s <= without_s);
    const double gap_with = gap_of(problem, choices, best_s);
    gaps.without += gap_of(sliced, slices, without_s);
    ++gaps.instances;
    gaps.better += best_s < without_s ? 1 : 0;
    gaps.sum += gap_with;
    gaps.most = std::max(gaps.most, gap_with);
  }
  return gaps;
}

TEST_CASE("with low rank allowed the optimum is never worse, and never below the bound") {
  const Gaps gaps = check_optima(0, 30);
  INFO(gaps.describe());
  CHECK(gaps.better > 3);
  // The bound is as tight as without low rank.
  CHECK(gaps.sum < gaps.without + 0.02 * gaps.instances);
}

TEST_CASE("the same of 500 random instances with low rank allowed", "[long]") {
  const Gaps gaps = check_optima(2000, 500);
  WARN(gaps.describe());
  CHECK(gaps.sum < gaps.without + 0.02 * gaps.instances);
}

TEST_CASE("search timeline mixes low rank with the others, and is never worse for it") {
  int used = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    RandomMatrices random(seed, {.least_gradients = 4, .most_gradients = 10, .most_nodes = 8});
    Problem problem = everything(random, seed, sim::Network::kPort);
    problem.limits.evaluations = 2000;
    const SearchResult found = search_timeline(problem);
    const double time_s =
        simulated_iteration_s(problem.model, found.plan, *problem.machines, found.transfer_order);
    CAPTURE(seed);
    const Choices choices = make_choices(problem);
    const double bound_s = lower_bound(problem.model, *problem.machines, choices).seconds;
    CHECK(bound_s <= time_s);
    for (const casync::Decision& decision : found.plan.decisions) {
      used += is_additive(casync::algorithm_at(found.plan.algorithms, decision.algorithm)) ? 1 : 0;
    }
    Problem raw = problem;
    raw.algorithms.clear();
    const SearchResult none = search_timeline(raw);
    CHECK(time_s <=
          1.02 * simulated_iteration_s(raw.model, none.plan, *raw.machines, none.transfer_order));
  }
  CHECK(used > 0);
}

costs::Profile matrix_profile() {
  costs::Profile profile;
  profile.name = "matrices";
  profile.source = "made up";
  profile.hardware = "none";
  profile.memory_bandwidth = 1e11;
  const costs::Curve codec = {{{0, 1e-4, 0}}, 0};
  for (const char* name : {"onebit", "fp16"}) profile.codecs[name] = {codec, codec, codec};
  // Each encode takes 10 µs, the decode 20 µs.
  profile.codecs["powersgd"].stages = {{.a_s = 1e-5}, {.a_s = 1e-5}};
  profile.codecs["powersgd"].decode_stages = {.a_s = 2e-5};
  profile.link = {.overhead_s = 1e-5, .bandwidth = 1e9, .bandwidth_both_ways = 1e9};
  return profile;
}

models::Model matrices() {
  models::Model model;
  model.gradients = {{.name = "w", .elements = 1 << 20, .shape = {1024, 1024}},
                     {.name = "b", .elements = 1024, .shape = {1024}},
                     {.name = "v", .elements = 1 << 18, .shape = {512, 512}}};
  return model;
}

TEST_CASE("a choice whose codec refuses a gradient's shape is not offered for it") {
  const costs::Profile profile = matrix_profile();
  const Machines machines = {profile, costs::cluster_from_profile(profile, 4), sim::Network::kPort};
  const models::Model model = matrices();
  Problem problem = {.model = model,
                     .nodes = 4,
                     .algorithms = {"onebit", "powersgd(rank=4)"},
                     .profile = &profile,
                     .machines = &machines};
  const auto offers = [&](std::size_t g) {
    const Choices choices = make_choices(problem);
    return std::ranges::any_of(choices.gradients[g], [&](const casync::Decision& decision) {
      return sends_factors(choices, decision);
    });
  };
  CHECK(offers(0));
  CHECK_FALSE(offers(1));
  CHECK(offers(2));
  SECTION("all-reduced") {
    problem.topology = "allreduce";
    CHECK(offers(0));
    CHECK_FALSE(offers(1));
    const Choices choices = make_choices(problem);
    for (const casync::Decision& decision : choices.gradients[0]) {
      CHECK((decision.algorithm == casync::kRaw || sends_factors(choices, decision)));
    }
  }
  SECTION("of ranks that would not make it smaller") {
    // v's factors must have less than half of its numbers, but 2·128·(512 + 512) = 512·512.
    problem.algorithms = {"powersgd(rank=128)"};
    CHECK(offers(0));
    CHECK_FALSE(offers(2));
  }
  SECTION("on nodes of several GPUs") {
    Machines several = machines;
    several.cluster.gpus_per_node = 2;
    several.cluster.gpu_link = {1e-6, 1e10};
    problem.machines = &several;
    CHECK_FALSE(offers(0));
  }
}

TEST_CASE("DDP's PowerSGD hook takes three all-reduces of a bucket, one behind the other") {
  const costs::Profile profile = matrix_profile();
  const Machines machines = {profile, costs::cluster_from_profile(profile, 4), sim::Network::kPort};
  const models::Model model = matrices();
  const Problem problem = {.model = model,
                           .nodes = 4,
                           .algorithms = {"onebit"},
                           .profile = &profile,
                           .machines = &machines};
  // All gradients are ready at time 0. The first bucket ends with w, which has more than 1 MiB.
  // Each all-reduce is an ideal ring: 2(N−1)·(o + S/(N·B)). P and Q of w have 1024·4 numbers each,
  // those of v 512·4. The second bucket is b, raw, and v. A later factor of a bucket goes one place
  // later, so the order is w's P, b, w's Q, v's P, v's Q.
  const auto ring_s = [](double values) { return 6 * (1e-5 + 4 * values / 4 / 1e9); };
  const Baseline baseline = simulate_baseline(*find_baseline("ddp_powersgd"), problem, machines);
  REQUIRE(baseline.iteration_s);
  const double w = ring_s(4096), v = ring_s(2048), b = ring_s(1024);
  // The codec stream encodes P of w and v first, and w's Q after w's P, while b is sent.
  CHECK(*baseline.iteration_s == Approx(1e-5 + w + b + w + v + 1e-5 + v + 2e-5));
  CHECK(baseline.plan.bulk_groups.empty());  // every group has a single member
  SECTION("a profile without its costs leaves it out") {
    costs::Profile without = profile;
    without.codecs.erase("powersgd");
    const Machines others = {without, machines.cluster, sim::Network::kPort};
    for (const Baseline& one : simulate_baselines(problem, others)) {
      CHECK(one.name != "ddp_powersgd");
    }
    CHECK_THAT(simulate_baseline(*find_baseline("ddp_powersgd"), problem, others).diagnostic,
               Catch::Contains("no costs of powersgd(rank=4)"));
  }
}

TEST_CASE("SeCoPa's formulas leave low rank out, and refuse to have nothing else") {
  const costs::Profile profile = matrix_profile();
  const models::Model model = matrices();
  Problem problem = {.model = model, .nodes = 4, .algorithms = {}, .profile = &profile};
  problem.algorithms = {"powersgd(rank=4)", "onebit"};
  const SearchResult found = search_secopa(problem);
  for (const casync::Algorithm& algorithm : found.plan.algorithms) {
    CHECK_FALSE(algorithm.is_additive());
  }
  CHECK_THAT(found.diagnostics.back(), Catch::Contains("they are left out"));
  problem.algorithms = {"powersgd(rank=4)"};
  CHECK_THROWS_WITH(search_secopa(problem),
                    Catch::Contains("no formulas") && Catch::Contains("`search` timeline"));
}

TEST_CASE("pass more_accurate takes a higher rank where that costs nothing") {
  costs::Profile profile = matrix_profile();
  const Machines machines = {profile, costs::cluster_from_profile(profile, 4), sim::Network::kPort};
  models::Model model = matrices();
  // v is hidden behind the backward of w. The iteration waits for w, the last gradient.
  model.gradients[2].ready_s = 0;
  model.gradients[1].ready_s = 0.1;
  model.gradients[0].ready_s = 0.2;
  Problem problem = {.model = model,
                     .topology = "allreduce",
                     .nodes = 4,
                     .algorithms = {"powersgd(rank=1)", "powersgd(rank=4)"},
                     .profile = &profile,
                     .machines = &machines,
                     .limits = {.evaluations = 1000}};
  problem.tolerance = 0;
  TimedPlan plan = {.plan = {.topology = "allreduce",
                             .nodes = 4,
                             .algorithms = {algorithm("powersgd(rank=1)")},
                             .decisions = {{0, 1}, {casync::kRaw, 1}, {0, 1}}}};
  plan.iteration_s = simulated_iteration_s(model, plan.plan, machines);
  const PolishedPlan polished = run_passes(problem, plan, {});
  CHECK(polished.plan.iteration_s <= plan.iteration_s);
  CHECK(polished.plan.plan.decisions[2].algorithm == casync::kRaw);  // v is hidden, so raw is free
  // w takes less time with rank 1 than with rank 4 or raw, so rank 1 stays.
  const casync::Decision& w = polished.plan.plan.decisions[0];
  REQUIRE(w.algorithm != casync::kRaw);
  CHECK(polished.plan.plan.algorithms[static_cast<std::size_t>(w.algorithm)].name ==
        "powersgd(rank=1)");
  SECTION("where raw would be too slow, the rank rises as far as it is free") {
    profile.all_reduce[4] = {{{0, 1e-3, 0}, {5000, 1, 0}}, 0};  // 1 ms up to 5000 bytes, 1 s above
    const Machines steps = {profile, machines.cluster, sim::Network::kPort};
    problem.machines = &steps;
    model.gradients[1].ready_s = 0.0;
    model.gradients[0] = {.name = "w", .elements = 256 * 256, .ready_s = 0.2, .shape = {256, 256}};
    plan.iteration_s = simulated_iteration_s(model, plan.plan, steps);
    const PolishedPlan higher = run_passes(problem, plan, {});
    const casync::Decision& chosen = higher.plan.plan.decisions[0];
    REQUIRE(chosen.algorithm != casync::kRaw);
    // At rank 4, a factor has 256·4 numbers, 4096 bytes. It is as fast as at rank 1.
    CHECK(higher.plan.plan.algorithms[static_cast<std::size_t>(chosen.algorithm)].name ==
          "powersgd(rank=4)");
  }
}

TEST_CASE("tools write, read and explain plans with low rank", "[tool]") {
  const Workplace place;
  costs::Profile profile = matrix_profile();
  costs::write_profile((place.path() / "p.yaml").string(), profile);
  place.write("m.csv",
              "name,elements,ready_us,shape\nv,262144,10,512x512\nb,1024,20,1024\n"
              "w,4194304,30,2048x2048\n");
  const std::string common = " --input m.csv --nnodes 4 --network port --profile p.yaml";
  const std::string topology = GENERATE(as<std::string>(), "PS", "RING");
  const std::string plan = GENERATE(as<std::string>(), "plan.txt", "plan.yaml");
  const std::string list = GENERATE(as<std::string>(), "powersgd(rank=4)", "powersgd(rank=1|4)");
  CAPTURE(topology, plan, list);
  const ToolRun planned =
      place.run("hipress-plan" + common + " --topology " + topology + " --algorithm 'fp16," + list +
                "' --evaluations 300 --explain --json --output " + plan);
  INFO(planned.err);
  REQUIRE(planned.status == 0);
  const auto report = nlohmann::json::parse(planned.out);
  CHECK_THAT(place.read(plan), Catch::Contains("powersgd(rank="));
  CHECK(report.at("lower_bound_s") <= report.at("predicted_iteration_s"));
  CHECK(report.at("baselines").contains("ddp_powersgd"));
  std::string options;
  for (const auto& gradient : report.at("explain").at("gradients")) {
    options += gradient.at("option").get<std::string>() + "\n";
  }
  CHECK_THAT(options, Catch::Contains("powersgd(rank="));
  const ToolRun replayed =
      place.run("hipress-sim" + common + " --topology " + topology + " --plan " + plan + " --json");
  INFO(replayed.err);
  REQUIRE(replayed.status == 0);
  CHECK(nlohmann::json::parse(replayed.out).at("iteration_s").get<double>() ==
        Approx(report.at("predicted_iteration_s").get<double>()));
  const ToolRun compared = place.run("hipress-plan" + common + " --topology " + topology +
                                     " --plan " + plan + " --compare ddp_powersgd");
  INFO(compared.err);
  CHECK(compared.status == 0);
}

TEST_CASE("a list says all ranks in short, and SeCoPa's search leaves them out aloud", "[tool]") {
  const Workplace place;
  place.write("m.csv", "name,elements,ready_us,shape\nw,4194304,30,2048x2048\n");
  const ToolRun drop_in =
      place.run("hipress-plan --input m.csv --nnodes 4 --algorithm 'onebit,powersgd(rank=1|2)'");
  CHECK(drop_in.status == 0);
  CHECK_THAT(drop_in.err, Catch::Contains("they are left out"));
  const ToolRun unknown =
      place.run("hipress-plan --input m.csv --nnodes 4 --algorithm 'powersgd(rank=1|999)'");
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.err, Catch::Contains("rank=999"));
  // The list expands to 2^30 algorithms. The error must name the unknown parameter.
  std::string all;
  for (int i = 1; i <= 30; ++i) all += fmt::format("p{}=1|2,", i);
  const ToolRun many =
      place.run("hipress-plan --input m.csv --nnodes 4 --algorithm 'onebit(" + all + "q=1)'");
  CHECK(many.status == 2);
  CHECK_THAT(many.err, Catch::Contains("there is no parameter 'p1'"));
  // Algorithms are counted over the whole list: 64 ranks in each of two texts are 128.
  std::string ranks = "1";
  for (int rank = 2; rank <= 64; ++rank) ranks += fmt::format("|{}", rank);
  const std::string list = "powersgd(rank=" + ranks + ")";
  const ToolRun two =
      place.run("hipress-plan --input m.csv --nnodes 4 --search timeline --algorithm '" + list +
                "," + list + "'");
  CHECK(two.status == 2);
  CHECK_THAT(two.err, Catch::Contains("--algorithm names more than the 127 algorithms"));
  const ToolRun one =
      place.run("hipress-plan --input m.csv --nnodes 4 --algorithm 'powersgd(rank=" + ranks + "|" +
                ranks + ")'");
  CHECK(one.status == 2);
  CHECK_THAT(one.err, Catch::Contains("stands for more than 127 algorithms"));
}

}  // namespace
}  // namespace hipress::planner
