#include "planner/baselines.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "casync/strategy.hpp"
#include "planner/greedy.hpp"
#include "planner/secopa.hpp"
#include "plans/plan_builder.hpp"
#include "plans/plan_file.hpp"
#include "sim/parallel.hpp"

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
    BaselineRow{"none", "nothing compressed", none, false},
    BaselineRow{"fp16", "everything cast to half precision", fp16},
    BaselineRow{"all", "everything compressed", all},
    BaselineRow{"threshold_262144", "compressed from 262144 elements on", threshold},
    BaselineRow{"secopa", "by SeCoPa's cost model", secopa},
};

}  // namespace

std::span<const BaselineRow> baselines() { return kBaselines; }

bool has_half_precision(const models::Model& model) {
  return std::any_of(
      model.gradients.begin(), model.gradients.end(),
      [](const models::Gradient& gradient) { return !plans::cast_of(gradient.dtype).empty(); });
}

std::vector<std::string> strategies_of(const Problem& problem, const BaselineRow& baseline) {
  std::vector<std::string> names = strategies_of(problem);
  if (baseline.compresses) {
    std::erase_if(names, sends_raw_alone);
  } else if (problem.strategy == "best" && !has_half_precision(problem.model)) {
    for (const casync::Strategy& strategy : casync::strategies()) {
      const std::string name(strategy.name);
      if (sends_raw_alone(name)) names.push_back(name);
    }
  }
  return names;
}

namespace {

/// The baseline with the strategy that is best for it.
Baseline simulate_baseline(const BaselineRow& row, const Problem& problem,
                           const Machines& machines) {
  Baseline best{.name = row.name, .plan = {}, .iteration_s = {}, .remark = {}};
  const std::vector<std::string> strategies = strategies_of(problem, row);
  if (strategies.empty()) best.remark = problem.strategy + " sends gradients as fp32";
  for (const std::string& strategy : strategies) {
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
  return best;
}

}  // namespace

std::vector<Baseline> simulate_baselines(const Problem& problem, const Machines& machines) {
  std::vector<BaselineRow> rows(kBaselines.begin(), kBaselines.end());
  rows.push_back({"greedy", "one gradient after the other, by the simulated timeline", greedy});
  std::vector<Baseline> result(rows.size());
  sim::run_parallel(rows.size(), problem.limits.jobs, [&](std::size_t i, unsigned) {
    result[i] = simulate_baseline(rows[i], problem, machines);
  });
  return result;
}

const Baseline* faster_baseline(const Problem& problem, const std::vector<Baseline>& baselines,
                                double planned_s, Allowance allowance) {
  const Baseline* fastest = nullptr;
  for (const Baseline& baseline : baselines) {
    if (!baseline.iteration_s || *baseline.iteration_s >= planned_s) continue;
    if (allows(problem, baseline.plan) != (allowance == Allowance::kAllowed)) continue;
    planned_s = *baseline.iteration_s;
    fastest = &baseline;
  }
  return fastest;
}

}  // namespace hipress::planner
