// Measures the time to plan each shipped model. search_secopa() is compared with one simulation of
// its plan; search_timeline() with search_secopa() and search_greedy(), in search time and in the
// iteration time of the plans. BERT-large is also planned in 0.1 s and 1 s, and for 1024 nodes.
#include <sys/resource.h>

#include <string>

#include "bench/report.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "planner/bound/bound.hpp"
#include "planner/choices/choices.hpp"
#include "planner/rules/secopa.hpp"
#include "planner/search/greedy.hpp"
#include "planner/search/timeline_search.hpp"
#include "planner/timing/evaluation.hpp"
#include "plans/plan_file.hpp"
#include "tools/frame.hpp"
#include "tools/validators.hpp"

namespace hipress::bench {
namespace {

constexpr std::uint32_t kNodes = 16;
constexpr std::uint32_t kManyNodes = 1024;
constexpr double kMax_bytes = 200e6;  // limit for the memory of planning for many nodes
constexpr double kLong_s = 60;        // budget of the search with which that of 5 s is compared
constexpr double kWantedGap = 0.01;
constexpr std::size_t kBranchNodes = 30;  // as in hipress-plan

planner::Problem problem_for(const models::Model& model) {
  return {.model = model, .topology = "ps", .nodes = kNodes, .algorithms = {"onebit", "fp16"}};
}

/// Machines with this profile, on network `port`.
planner::Machines machines_of(const costs::Profile& profile, std::uint32_t nodes) {
  return {.profile = profile,
          .cluster = costs::cluster_from_profile(profile, nodes),
          .network = sim::Network::kPort};
}

/// Problem for search_timeline(), with four algorithms.
planner::Problem timeline_problem(const models::Model& model, const planner::Machines& machines) {
  planner::Problem problem = problem_for(model);
  problem.algorithms = {"onebit", "tbq", "terngrad", "fp16"};
  problem.profile = &machines.profile;
  problem.machines = &machines;
  problem.nodes = machines.cluster.nodes;
  problem.grouping = planner::Grouping::kAny;
  return problem;
}

/// Requires that SeCoPa's search finds the published plan, before its speed is measured.
void verify() {
  const models::Model model = models::read_model("vgg19");
  const casync::Plan found = planner::search_secopa(problem_for(model)).plan;
  const casync::Plan published =
      plans::resolve_plan(io::data_file("tests/data/secopa_vgg19_PS_16.txt"),
                          {.model = model, .topology = "ps", .nodes = kNodes})
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
  const PairedTiming times =
      compare([&] { planner::search_secopa(problem); },
              [&] { planner::simulated_iteration_s(model, plan, machines); }, {.budget_s = 1.0});
  report.add(
      {"secopa." + name, "s", times.subject.median_s, "one_simulation", times.reference.median_s});
}

/// Duration of a search, and of an iteration under its plan.
struct Planned {
  double search_s = 0;
  double iteration_s = 0;
};

Planned plan_with(planner::SearchResult (*search)(const planner::Problem&),
                  const planner::Problem& problem) {
  planner::SearchResult found;
  Planned planned;
  planned.search_s = seconds_of([&] { found = search(problem); });
  planned.iteration_s = planner::affordable_iteration(problem.model, found.plan, *problem.machines,
                                                      found.transfer_order)
                            .iteration_s.value();
  return planned;
}

/// Compares search_timeline() under a budget with search_secopa() and with search_greedy(), which
/// is like Espresso's search: in search time and in the iteration time of the plans.
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

double peak_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return 1024 * static_cast<double>(usage.ru_maxrss);
}

/// Plans BERT-large for many nodes. Measures how soon a plan is found, and how much better plans
/// get with more time. Also measures the process's peak memory, so it must run first.
void plan_for_many_nodes(Report& report, const costs::Profile& profile, bool with_long_search) {
  const models::Model model = models::read_model("bert_large");
  const planner::Machines machines = machines_of(profile, kManyNodes);
  for (const std::string topology : {"ps", "ring"}) {
    const std::string name = fmt::format("bert_large.{}.{}nodes", topology, kManyNodes);
    planner::Problem problem = timeline_problem(model, machines);
    problem.topology = topology;
    const auto planned = [&](double budget_s) {
      problem.limits.budget_s = budget_s;
      return plan_with(planner::search_timeline, problem);
    };
    const Planned soon = planned(1);
    report.add({name + ".1s", "s", soon.search_s, "wanted", 1});
    const Planned later = planned(5);
    report.add({name, "peak bytes", peak_bytes(), "wanted", kMax_bytes});
    report.add({name + ".1s", "iteration_s", soon.iteration_s, "after_5s", later.iteration_s});
    const planner::Bound bound =
        planner::lower_bound(model, machines, planner::make_choices(problem),
                             {.branch_nodes = kBranchNodes, .known_s = later.iteration_s});
    report.add({name + ".5s", "iteration_s", later.iteration_s, "bound", bound.seconds});
    if (!with_long_search) continue;
    report.add({name + ".5s", "iteration_s", later.iteration_s, "after_60s",
                planned(kLong_s).iteration_s});
  }
}

/// Plans BERT-large in 0.1 s and in 1 s, and compares each gap with its goal.
void plan_in_a_hurry(Report& report, const planner::Machines& machines) {
  const models::Model model = models::read_model("bert_large");
  for (const auto& [budget_s, wanted] : {std::pair{0.1, 0.03}, std::pair{1.0, 0.01}}) {
    for (const std::string topology : {"ps", "ring"}) {
      planner::Problem problem = timeline_problem(model, machines);
      problem.topology = topology;
      problem.limits.budget_s = budget_s;
      const Planned found = plan_with(planner::search_timeline, problem);
      const planner::Bound bound =
          planner::lower_bound(model, machines, planner::make_choices(problem),
                               {.branch_nodes = kBranchNodes, .known_s = found.iteration_s});
      const std::string name =
          fmt::format("bert_large.{}.{}nodes.{:g}s", topology, machines.cluster.nodes, budget_s);
      report.add({name, "s", found.search_s, "budget", budget_s});
      report.add({name, "gap", planner::gap(found.iteration_s, bound.seconds), "wanted", wanted});
    }
  }
}

int run_all(const std::string& json, double budget_s, bool with_long_search) {
  if (!json.empty()) io::require_writable(json);
  const costs::Profile fast = costs::read_profile("v100-100g");
  Report report;
  plan_for_many_nodes(report, fast, with_long_search);
  const planner::Machines planned_for = machines_of(fast, kNodes);
  plan_in_a_hurry(report, planned_for);
  verify();
  const costs::Profile profile = costs::read_profile("sosp21");
  const planner::Machines machines = {.profile = profile,
                                      .cluster = costs::cluster_from_profile(profile, kNodes)};
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
  bool with_long_search = false;
  return hipress::tools::run_tool(
      argc, argv,
      {"bench_planner", "Times the searches on every shipped model, ps among 16 nodes.",
       "bench_planner --json bench_planner.json"},
      [&](CLI::App& app) {
        app.add_option("--json", json, "also write the rows to this file");
        app.add_option("--budget", budget_s, "seconds of search timeline for each model")
            ->check(hipress::tools::number_from(0, 3600))
            ->capture_default_str();
        app.add_flag("--long", with_long_search,
                     "also compare plans for 1024 nodes with plans of a minute");
      },
      [&] { return hipress::bench::run_all(json, budget_s, with_long_search); });
}
