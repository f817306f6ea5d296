// Time to plan each shipped model with SeCoPa's search, beside one simulation of the plan it finds;
// and with search timeline, beside SeCoPa and greedy: time to plan, and how fast the plans are.
#include <CLI/CLI.hpp>
#include <string>

#include "bench/report.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/tool.hpp"
#include "planner/bound.hpp"
#include "planner/choices.hpp"
#include "planner/evaluation.hpp"
#include "planner/greedy.hpp"
#include "planner/secopa.hpp"
#include "planner/timeline_search.hpp"
#include "plans/plan_file.hpp"

namespace hipress::bench {
namespace {

constexpr std::uint32_t kNodes = 16;
constexpr double kWantedGap = 0.01;
constexpr std::size_t kBranchNodes = 30;  // as hipress-plan

planner::Problem problem_for(const models::Model& model) {
  return {.model = model, .strategy = "ps", .nodes = kNodes, .algorithms = {"onebit", "fp16"}};
}

/// What search timeline is asked: three algorithms and fp16, on one network port per node.
planner::Problem timeline_problem(const models::Model& model, const planner::Machines& machines) {
  planner::Problem problem = problem_for(model);
  problem.algorithms = {"onebit", "tbq", "terngrad", "fp16"};
  problem.profile = &machines.profile;
  problem.machines = &machines;
  problem.grouping = planner::Grouping::kAny;
  return problem;
}

/// The search must give the published plan before its speed means anything.
void verify() {
  const models::Model model = models::read_model("vgg19");
  const casync::Plan found = planner::search_secopa(problem_for(model)).plan;
  const casync::Plan published =
      plans::resolve_plan(io::data_file("tests/data/secopa_vgg19_PS_16.txt"),
                          {.model = model, .strategy = "ps", .nodes = kNodes})
          .plan;
  for (std::size_t g = 0; g < model.gradients.size(); ++g) {
    const casync::Decision& ours = found.decisions[g];
    const casync::Decision& theirs = published.decisions[g];
    if (ours.algorithm != theirs.algorithm || ours.partitions != theirs.partitions) {
      throw io::RunError("gradient '" + model.gradients[g].name + "' is not planned as published");
    }
  }
}

void time_model(Report& report, const std::string& name, const planner::Machines& machines) {
  const models::Model model = models::read_model(name);
  const planner::Problem problem = problem_for(model);
  const casync::Plan plan = planner::search_secopa(problem).plan;
  const Comparison times =
      compare([&] { planner::search_secopa(problem); },
              [&] { planner::simulated_iteration_s(model, plan, machines); }, {.budget_s = 1.0});
  report.add(
      {"secopa." + name, "s", times.subject.median_s, "one_simulation", times.reference.median_s});
}

/// A search's plan, and how long it took.
struct Planned {
  double search_s = 0;
  double iteration_s = 0;
};

Planned plan_with(planner::SearchResult (*search)(const planner::Problem&),
                  const planner::Problem& problem) {
  planner::SearchResult found;
  Planned planned;
  planned.search_s = seconds_of([&] { found = search(problem); });
  planned.iteration_s = planner::simulated_iteration_s(problem.model, found.plan, *problem.machines,
                                                       found.transfer_order);
  return planned;
}

/// Time to plan and quality of the plan of search timeline with that budget, beside SeCoPa and the
/// Espresso-like greedy.
void compare_plans(Report& report, const std::string& name, const planner::Machines& machines,
                   double budget_s) {
  const models::Model model = models::read_model(name);
  planner::Problem problem = timeline_problem(model, machines);
  problem.limits.budget_s = budget_s;
  const Planned timeline = plan_with(planner::search_timeline, problem);
  const Planned secopa = plan_with(planner::search_secopa, problem);
  const Planned greedy = plan_with(planner::search_greedy, problem);
  report.add({"timeline." + name, "s", timeline.search_s, "secopa", secopa.search_s});
  report.add({"timeline." + name, "s", timeline.search_s, "greedy", greedy.search_s});
  report.add(
      {"timeline." + name, "iteration_s", timeline.iteration_s, "secopa", secopa.iteration_s});
  report.add(
      {"timeline." + name, "iteration_s", timeline.iteration_s, "greedy", greedy.iteration_s});
  const planner::Bound bound =
      planner::lower_bound(model, machines, planner::make_choices(problem),
                           {.branch_nodes = kBranchNodes, .known_s = timeline.iteration_s});
  report.add({"timeline." + name, "gap", planner::gap(timeline.iteration_s, bound.seconds),
              "wanted", kWantedGap});
}

int run_all(const std::string& json, double budget_s) {
  verify();
  const costs::Profile profile = costs::read_profile("sosp21");
  const planner::Machines machines = {.profile = profile,
                                      .cluster = costs::cluster_from_profile(profile, kNodes)};
  const costs::Profile fast = costs::read_profile("v100_100g");
  const planner::Machines planned_for = {.profile = fast,
                                         .cluster = costs::cluster_from_profile(fast, kNodes),
                                         .network = sim::Network::kPort};
  Report report;
  for (const std::string& name : io::data_names("models", ".yaml")) {
    time_model(report, name, machines);
    compare_plans(report, name, planned_for, budget_s);
  }
  report.write(json);
  return 0;
}

}  // namespace
}  // namespace hipress::bench

int main(int argc, char** argv) {
  std::string json;
  double budget_s = 1;
  return hipress::io::run_tool(
      argc, argv,
      {"bench_planner", "Times the searches on every shipped model, ps among 16 nodes.",
       "bench_planner --json bench_planner.json"},
      [&](CLI::App& app) {
        app.add_option("--json", json, "also write the rows to this file");
        app.add_option("--budget", budget_s, "seconds of search timeline for each model")
            ->check(CLI::NonNegativeNumber)
            ->capture_default_str();
      },
      [&] { return hipress::bench::run_all(json, budget_s); });
}
