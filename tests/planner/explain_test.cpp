#include "planner/analysis/explain.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "casync/topology.hpp"
#include "planner/analysis/compare.hpp"
#include "planner/analysis/worth.hpp"
#include "planner/search/timeline_search.hpp"
#include "tests/planner/random_problem.hpp"

namespace hipress::planner {
namespace {

TimedPlan timed(const Problem& problem, casync::Plan plan) {
  const double iteration_s = simulated_iteration_s(problem.model, plan, *problem.machines);
  return {std::move(plan), sim::TransferOrder::kReady, iteration_s};
}

casync::Plan one_decision(const Problem& problem, const casync::Decision& decision) {
  casync::Plan plan;
  plan.topology = problem.topology;
  plan.nodes = problem.nodes;
  for (const std::string& name : problem.algorithms) plan.algorithms.push_back(algorithm(name));
  plan.decisions.assign(problem.model.gradients.size(), decision);
  return plan;
}

/// Simulated time of the plan if gradient g takes an option such as "onebit, K = 4".
double swapped_s(const Problem& problem, casync::Plan plan, std::size_t g,
                 const std::string& option) {
  const std::string name = option.substr(0, option.find(", K = "));
  casync::Decision& decision = plan.decisions.at(g);
  decision.algorithm = casync::kRaw;
  for (std::size_t i = 0; i < plan.algorithms.size(); ++i) {
    if (plan.algorithms[i].name == name) decision.algorithm = static_cast<std::int8_t>(i);
  }
  decision.partitions = std::stoi(option.substr(option.find("K = ") + 4));
  return simulated_iteration_s(problem.model, plan, *problem.machines);
}

TEST_CASE("runner-ups cost what a simulation with them says, and none is better than said") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    for (const sim::Network network : {sim::Network::kPort, sim::Network::kFair}) {
      CAPTURE(seed, static_cast<int>(network));
      RandomProblem random(seed, {.most_gradients = 10, .most_nodes = 4});
      const Problem problem = random.problem(network);
      const TimedPlan plan =
          timed(problem, one_decision(problem, {0, static_cast<std::int32_t>(problem.nodes)}));
      const Explanation explanation = explain(problem, plan);
      REQUIRE(explanation.rows.size() == problem.model.gradients.size());
      CHECK_FALSE(explanation.estimated);
      for (const GradientRow& row : explanation.rows) {
        REQUIRE(row.runner_up);
        const double expected = swapped_s(problem, plan.plan, row.gradient, *row.runner_up);
        CHECK(plan.iteration_s + row.runner_up_cost_s.value() == Approx(expected).margin(2e-12));
        if (network != sim::Network::kPort) continue;
        for (const char* other : {"raw, K = 1", "fp16, K = 1", "tbq, K = 1", "onebit, K = 1"}) {
          if (row.option == other) continue;
          CHECK(expected <= swapped_s(problem, plan.plan, row.gradient, other) + 2e-12);
        }
      }
    }
  }
}

/// Two gradients on four nodes of a parameter server; the first is ready long before the second.
class TwoGradients {
 public:
  TwoGradients() {
    random.topology = "ps";
    random.model.gradients = {{.name = "early", .elements = 4096, .ready_s = 0.001},
                              {.name = "late", .elements = 4'096'000, .ready_s = 0.5}};
    set(1e9, 1e-6, 0, 1e-12);
  }

  void set(double bandwidth, double overhead_s, double latency_s, double element_s) {
    random.profile.link = {.overhead_s = overhead_s,
                           .bandwidth = bandwidth,
                           .bandwidth_both_ways = bandwidth,
                           .latency_s = latency_s};
    const costs::Curve curve = {{{0, 0, element_s}}, 0};
    for (auto& [name, codec] : random.profile.codecs) codec = {curve, curve, curve};
    random.profile.merge = curve;
    random.machines.cluster = costs::cluster_from_profile(random.profile, 4);
  }

  Explanation explained(const casync::Decision& decision) {
    const Problem problem = random.problem(sim::Network::kPort);
    return explain(problem, timed(problem, one_decision(problem, decision)));
  }

  RandomProblem random{1, {.most_gradients = 4, .most_nodes = 4}};
};

TEST_CASE_METHOD(TwoGradients,
                 "what hides behind backward is told from what the iteration waits for") {
  const Explanation explanation = explained({casync::kRaw, 4});
  const GradientRow& early = explanation.rows.at(0);
  const GradientRow& late = explanation.rows.at(1);
  CHECK(early.place == Place::kHidden);
  CHECK(early.ready_s == Approx(0.001));
  CHECK(early.done_s < 0.5);
  CHECK(early.on_path_s == 0);
  // A node sends and receives 3 slices of 4 kB twice: 25 us each way, and 6 us of overheads.
  CHECK(early.why() == "hidden behind backward, mostly bandwidth");
  CHECK(late.place == Place::kCritical);
  CHECK(late.ready_s == Approx(0.5));
  CHECK(late.on_path_s == Approx(late.done_s - late.ready_s));
  CHECK(late.why() == "on the critical path, bound by bandwidth");
}

TEST_CASE_METHOD(TwoGradients, "what a gradient's work is bound by is named") {
  SECTION("bytes") {
    CHECK(explained({casync::kRaw, 4}).rows.at(1).limiter == Limiter::kBandwidth);
  }
  SECTION("latency") {
    set(1e12, 1e-6, 10e-3, 1e-12);
    CHECK(explained({casync::kRaw, 4}).rows.at(1).limiter == Limiter::kLatency);
  }
  SECTION("overheads") {
    set(1e12, 1e-2, 0, 1e-12);
    CHECK(explained({casync::kRaw, 4}).rows.at(1).limiter == Limiter::kLatency);
  }
  SECTION("codecs") {
    set(1e12, 1e-9, 0, 1e-6);
    CHECK(explained({0, 4}).rows.at(1).limiter == Limiter::kCodec);
  }
}

TEST_CASE_METHOD(TwoGradients, "a plan's memory is that of its messages and residuals") {
  // Leaves one gradient of 4,096,000 elements, on 4 nodes.
  random.model.gradients.erase(random.model.gradients.begin());
  const std::int64_t slice = 4'096'000 / 4;
  SECTION("raw") {
    // Each node receives three slices, which it adds to its own. The means need no buffer.
    const PlanMemory memory = explained({casync::kRaw, 4}).memory;
    CHECK(memory.residual_bytes == 0);
    CHECK(memory.buffer_bytes == 3 * slice * 4);
  }
  SECTION("onebit") {
    // Each node encodes three slices for other nodes, and the mean of its own slice. Each of these
    // four slices has a residual. It receives three messages with slices and three with means.
    const PlanMemory memory = explained({0, 4}).memory;
    CHECK(memory.residual_bytes == 4 * slice * 4);
    CHECK(memory.buffer_bytes == 10 * algorithm("onebit").encoded_bytes(slice));
  }
  SECTION("fp16 keeps no residual") {
    const PlanMemory memory = explained({2, 4}).memory;
    CHECK(memory.residual_bytes == 0);
    CHECK(memory.buffer_bytes == 10 * algorithm("fp16").encoded_bytes(slice));
  }
}

TEST_CASE("a plan's memory counts what an all-reduce casts into") {
  const models::Model model = {.gradients = {{.name = "g", .elements = 1001}}};
  casync::Plan plan = {.topology = "allreduce",
                       .nodes = 4,
                       .algorithms = {algorithm("fp16")},
                       .decisions = {{0, 1}}};
  CHECK(plan_memory(model, plan, casync::Folding::kNone).buffer_bytes ==
        algorithm("fp16").encoded_bytes(1001));
  plan.decisions = {{casync::kRaw, 1}};
  CHECK(plan_memory(model, plan, casync::Folding::kNone).buffer_bytes == 0);
}

TEST_CASE("a plan's memory is the same folded and in batches") {
  const models::Model model = {
      .gradients = {{.name = "g", .elements = 4 * 320}, {.name = "h", .elements = 8 * 320}}};
  for (const std::string topology : {"ps", "ring"}) {
    casync::Plan plan = {.topology = topology,
                         .nodes = 4,
                         .algorithms = {algorithm("onebit")},
                         .decisions = {{0, 4}, {0, 4}}};
    const PlanMemory whole = plan_memory(model, plan, casync::Folding::kNone);
    const PlanMemory folded = plan_memory(model, plan, casync::Folding::kFolded);
    plan.batch.threshold_bytes = 1 << 20;
    const PlanMemory batched = plan_memory(model, plan, casync::Folding::kNone);
    // Every node encodes all 4 partitions. Those of g and h have 3 · 320 fp32 values together.
    CHECK(whole.residual_bytes == 4 * 3 * 320 * 4);
    for (const PlanMemory& other : {folded, batched}) {
      CHECK(other.residual_bytes == whole.residual_bytes);
      CHECK(other.buffer_bytes == whole.buffer_bytes);
    }
  }
}

TEST_CASE("members of bulk groups are said to be") {
  RandomProblem random(4, {.least_gradients = 6, .most_gradients = 12, .most_nodes = 4});
  const Problem problem = random.problem(sim::Network::kFair);
  casync::Plan plan = one_decision(problem, {0, 1});
  plan.bulk.threshold_bytes = std::int64_t{1} << 40;
  const Explanation explanation = explain(problem, timed(problem, plan));
  for (const GradientRow& row : explanation.rows) {
    CHECK(row.group == "bulk0");
    CHECK_THAT(row.why(), Catch::Contains("in bulk0"));
    // In a group, another K would change nothing, so it is no runner-up.
    CHECK(row.runner_up.value_or("raw, K = 1").substr(0, 6) != "onebit");
  }
}

TEST_CASE("a gradient in a group by hand is explained as leaving the group") {
  RandomProblem random(4, {.least_gradients = 3, .most_gradients = 6, .most_nodes = 4});
  const Problem problem = random.problem(sim::Network::kFair);
  casync::Plan plan = one_decision(problem, {0, 1});
  plan.bulk_groups = {{0, 1, 2}};
  const Explanation explanation = explain(problem, timed(problem, plan));
  for (const GradientRow& row : explanation.rows) {
    if (row.gradient > 2) continue;
    REQUIRE(row.runner_up);
    casync::Plan without = plan;
    std::erase(without.bulk_groups[0], row.gradient);
    CHECK(timed(problem, plan).iteration_s + row.runner_up_cost_s.value() ==
          Approx(swapped_s(problem, without, row.gradient, *row.runner_up)).margin(1e-11));
  }
}

TEST_CASE("rows are sorted by what they are worth, without those that are worth nothing") {
  const std::vector<Difference> rows = {{"a", "", "", 0.0}, {"b", "", "", 2.0},
                                        {"c", "", "", {}},  {"d", "", "", -3.0},
                                        {"e", "", "", 2.0}, {"f", "", "", 1e-9}};
  std::string order;
  for (const Difference* row : by_worth(rows, &Difference::alone_s)) order += row->what;
  CHECK(order == "dbefc");
  CHECK(has_negative(rows, &Difference::alone_s));
  CHECK(!has_negative(std::vector<Difference>{rows[1], rows[2]}, &Difference::alone_s));
}

TEST_CASE("size classes count every gradient once") {
  RandomProblem random(4, {.least_gradients = 6, .most_gradients = 12, .most_nodes = 4});
  random.model.gradients[1].elements = random.model.gradients[0].elements;
  const Problem problem = random.problem(sim::Network::kPort);
  const Explanation explanation = explain(problem, timed(problem, one_decision(problem, {0, 1})));
  std::size_t count = 0;
  for (const SizeClass& size : explanation.classes) {
    count += size.count;
    CHECK(size.options.at(0) == std::pair<std::string, std::size_t>("onebit, K = 1", size.count));
    if (size.elements == random.model.gradients[0].elements) CHECK(size.count >= 2);
  }
  CHECK(count == problem.model.gradients.size());
  CHECK(std::is_sorted(
      explanation.classes.begin(), explanation.classes.end(),
      [](const SizeClass& a, const SizeClass& b) { return a.elements > b.elements; }));
}

TEST_CASE("an empty model and a single node are explained too") {
  RandomProblem random(4, {.most_gradients = 4, .most_nodes = 4});
  SECTION("empty") { random.model.gradients.clear(); }
  SECTION("one node") { random.machines.cluster = costs::cluster_from_profile(random.profile, 1); }
  const Problem problem = random.problem(sim::Network::kFair);
  const TimedPlan plan = timed(problem, one_decision(problem, {casync::kRaw, 1}));
  const Explanation explanation = explain(problem, plan);
  CHECK(explanation.rows.size() == problem.model.gradients.size());
  for (const GradientRow& row : explanation.rows) {
    CHECK(row.limiter == Limiter::kNothing);
    CHECK(row.runner_up_cost_s.value_or(0) >= 0);  // without work, no option is faster
  }
  CHECK(compare_plans(problem, plan, plan).differences.empty());
}

// ---- comparing ----

TEST_CASE("each difference between plans is worth what a simulation with it alone says") {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    for (const sim::Network network : {sim::Network::kPort, sim::Network::kFair}) {
      CAPTURE(seed, static_cast<int>(network));
      RandomProblem random(seed, {.most_gradients = 10, .most_nodes = 4});
      Problem problem = random.problem(network);
      problem.limits.evaluations = 300;
      const TimedPlan first = timed(problem, search_timeline(problem).plan);
      const TimedPlan second = timed(problem, one_decision(problem, {0, 1}));
      const PlanComparison comparison = compare_plans(problem, first, second);
      CHECK(comparison.first.iteration_s == first.iteration_s);
      CHECK(comparison.second.iteration_s == second.iteration_s);
      CHECK(comparison.second.compressed == problem.model.gradients.size());
      for (const Difference& difference : comparison.differences) {
        const auto gradient =
            std::find_if(problem.model.gradients.begin(), problem.model.gradients.end(),
                         [&](const models::Gradient& g) { return g.name == difference.what; });
        REQUIRE(gradient != problem.model.gradients.end());
        const auto g = static_cast<std::size_t>(gradient - problem.model.gradients.begin());
        CHECK(difference.second == "onebit, K = 1");
        CHECK(describe_option(problem.model, first.plan, g) == difference.first);
        CHECK(first.iteration_s + difference.alone_s.value() ==
              Approx(swapped_s(problem, first.plan, g, difference.second)).margin(2e-12));
      }
    }
  }
}

TEST_CASE("what whole plans decide is compared too") {
  RandomProblem random(6, {.least_gradients = 6, .most_gradients = 10, .most_nodes = 4});
  const Problem problem = random.problem(sim::Network::kFair);
  casync::Plan plan = one_decision(problem, {0, 4});
  plan.topology = "ps";
  const TimedPlan first = timed(problem, plan);
  plan.topology = "ring";
  plan.bulk = {.threshold_bytes = 1 << 20};
  const TimedPlan second = timed(problem, plan);
  const PlanComparison comparison = compare_plans(problem, first, second);
  REQUIRE(comparison.differences.size() == 2);
  CHECK(comparison.differences[0].what == "topology");
  CHECK(comparison.differences[0].second == "ring");
  CHECK(comparison.differences[1].what == "bulk groups");
  CHECK(comparison.differences[1].first == "off");
  CHECK(comparison.differences[1].second == "below 1MiB");
  plan.bulk = {};
  CHECK(first.iteration_s + comparison.differences[0].alone_s.value() ==
        Approx(simulated_iteration_s(problem.model, plan, random.machines)).margin(2e-12));
}

}  // namespace
}  // namespace hipress::planner
