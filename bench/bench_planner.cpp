// Time to plan each shipped model with SeCoPa's search, beside one simulation of the plan it finds.
#include <CLI/CLI.hpp>
#include <string>

#include "bench/report.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/tool.hpp"
#include "planner/evaluation.hpp"
#include "planner/secopa.hpp"
#include "plans/plan_file.hpp"

namespace hipress::bench {
namespace {

constexpr std::uint32_t kNodes = 16;

planner::Problem problem_for(const models::Model& model) {
  return {.model = model, .strategy = "ps", .nodes = kNodes, .algorithms = {"onebit", "fp16"}};
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

int run_all(const std::string& json) {
  verify();
  const costs::Profile profile = costs::read_profile("sosp21");
  const planner::Machines machines = {.profile = profile,
                                      .cluster = costs::cluster_from_profile(profile, kNodes)};
  Report report;
  for (const std::string& name : io::data_names("models", ".yaml"))
    time_model(report, name, machines);
  report.write(json);
  return 0;
}

}  // namespace
}  // namespace hipress::bench

int main(int argc, char** argv) {
  std::string json;
  return hipress::io::run_tool(
      argc, argv,
      {"bench_planner", "Times the searches on every shipped model, ps among 16 nodes.",
       "bench_planner --json bench_planner.json"},
      [&](CLI::App& app) { app.add_option("--json", json, "also write the rows to this file"); },
      [&] { return hipress::bench::run_all(json); });
}
