#include "planner/baselines.hpp"

#include <array>
#include <string>

#include "planner/greedy.hpp"
#include "planner/secopa.hpp"
#include "plans/plan_file.hpp"

namespace hipress::planner {
namespace {

/// One of the plans that `--plan NAME` stands for; they have K = N. Where nothing may be
/// compressed, what would compress is none.
casync::Plan named_plan(const std::string& name, const Problem& problem) {
  const bool nothing = problem.algorithms.empty();
  return plans::resolve_plan(
             nothing && name != "fp16" ? "none" : name,
             {.model = problem.model,
              .strategy = problem.strategy,
              .nodes = problem.nodes,
              .algorithm = nothing ? std::string("fp16") : first_lossy(problem.algorithms)})
      .plan;
}

casync::Plan none(const Problem& problem) { return named_plan("none", problem); }
casync::Plan fp16(const Problem& problem) { return named_plan("fp16", problem); }
casync::Plan all(const Problem& problem) { return named_plan("all", problem); }
casync::Plan threshold(const Problem& problem) { return named_plan("threshold:262144", problem); }
casync::Plan secopa(const Problem& problem) {
  return problem.algorithms.empty() ? none(problem) : search_secopa(problem).plan;
}
casync::Plan greedy(const Problem& problem) { return search_greedy(problem).plan; }

constexpr std::array kBaselines = {
    BaselineRow{"none", "nothing compressed", none},
    BaselineRow{"fp16", "everything cast to half precision", fp16},
    BaselineRow{"all", "everything compressed", all},
    BaselineRow{"threshold_262144", "compressed from 262144 elements on", threshold},
    BaselineRow{"secopa", "by SeCoPa's cost model", secopa},
};

}  // namespace

std::span<const BaselineRow> baselines() { return kBaselines; }

std::vector<Baseline> simulate_baselines(const Problem& problem, const Machines& machines) {
  std::vector<BaselineRow> rows(kBaselines.begin(), kBaselines.end());
  rows.push_back({"greedy", "one gradient after the other, by the simulated timeline", greedy});
  std::vector<Baseline> result;
  for (const BaselineRow& row : rows) {
    Baseline best{.name = row.name, .plan = {}, .iteration_s = {}, .remark = {}};
    for (const std::string& strategy : strategies_of(problem)) {
      Problem one = problem;
      one.strategy = strategy;
      one.machines = &machines;
      casync::Plan plan = row.make(one);
      AffordableTime time = affordable_iteration(problem.model, plan, machines);
      if (best.plan.decisions.empty() ||
          (time.iteration_s && (!best.iteration_s || *time.iteration_s < *best.iteration_s))) {
        best.plan = std::move(plan);
        best.iteration_s = time.iteration_s;
        best.remark = std::move(time.remark);
      }
    }
    result.push_back(std::move(best));
  }
  return result;
}

const Baseline* faster_baseline(const Problem& problem, const std::vector<Baseline>& baselines,
                                double planned_s) {
  const Baseline* fastest = nullptr;
  for (const Baseline& baseline : baselines) {
    if (!baseline.iteration_s || *baseline.iteration_s >= planned_s) continue;
    // Whoever allows any algorithm allows a cast, which gives up no more; the others' are his own.
    if (problem.algorithms.empty() && baseline.name == "fp16") continue;
    planned_s = *baseline.iteration_s;
    fastest = &baseline;
  }
  return fastest;
}

}  // namespace hipress::planner
