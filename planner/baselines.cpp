#include "planner/baselines.hpp"

#include <array>
#include <string>

#include "planner/secopa.hpp"
#include "plans/plan_file.hpp"

namespace hipress::planner {
namespace {

/// One of the plans that `--plan NAME` stands for; they have K = N.
casync::Plan named_plan(const std::string& name, const Problem& problem) {
  return plans::resolve_plan(name, {.model = problem.model,
                                    .strategy = problem.strategy,
                                    .nodes = problem.nodes,
                                    .algorithm = first_lossy(problem.algorithms)})
      .plan;
}

casync::Plan none(const Problem& problem) { return named_plan("none", problem); }
casync::Plan fp16(const Problem& problem) { return named_plan("fp16", problem); }
casync::Plan all(const Problem& problem) { return named_plan("all", problem); }
casync::Plan threshold(const Problem& problem) { return named_plan("threshold:262144", problem); }
casync::Plan secopa(const Problem& problem) { return search_secopa(problem).plan; }

constexpr std::array kBaselines = {
    BaselineRow{"none", "nothing compressed", none},
    BaselineRow{"fp16", "everything cast to half precision", fp16},
    BaselineRow{"all", "everything compressed", all},
    BaselineRow{"threshold_262144", "compressed from 262144 elements on", threshold},
    BaselineRow{"secopa", "by SeCoPa's cost model", secopa},
};

}  // namespace

std::span<const BaselineRow> baselines() { return kBaselines; }

std::vector<BaselineTime> simulate_baselines(const Problem& problem, const Machines& machines) {
  std::vector<BaselineTime> times;
  for (const BaselineRow& row : kBaselines) {
    times.push_back({row.name, simulated_iteration_s(problem.model, row.make(problem), machines)});
  }
  return times;
}

}  // namespace hipress::planner
