#include "planner/rules/alone.hpp"

#include <array>
#include <string>

#include "planner/rules/secopa.hpp"
#include "plans/plan_builder.hpp"
#include "plans/plan_file.hpp"

namespace hipress::planner {
namespace {

/// Makes the plan of that name with K = N. Without an algorithm, compressing plans become `none`.
casync::Plan named_plan(const std::string& name, const Problem& problem) {
  const bool nothing = problem.algorithms.empty();
  return plans::resolve_plan(
             nothing && name != "fp16" ? "none" : name,
             {.model = problem.model,
              .topology = problem.topology,
              .nodes = problem.nodes,
              .algorithm = nothing ? std::string("fp16") : first_lossy(problem.algorithms)})
      .plan;
}

}  // namespace

namespace rules {

casync::Plan none(const Problem& problem) { return named_plan("none", problem); }
casync::Plan fp16(const Problem& problem) { return named_plan("fp16", problem); }
casync::Plan all(const Problem& problem) { return named_plan("all", problem); }
casync::Plan threshold(const Problem& problem) { return named_plan("threshold:262144", problem); }
casync::Plan secopa(const Problem& problem) {
  const bool decides = !of_slices(problem.algorithms).empty() && secopa_knows(problem.topology);
  return decides ? search_secopa(problem).plan : none(problem);
}

}  // namespace rules

namespace {

constexpr std::array kAlone = {
    BaselineRow{"none", "nothing compressed, each gradient alone", rules::none, false},
    BaselineRow{.name = "fp16",
                .help = "everything cast to half precision, each gradient alone",
                .make = rules::fp16,
                .algorithm = "fp16"},
    BaselineRow{"all", "everything compressed, each gradient alone", rules::all},
    BaselineRow{"threshold_262144", "compressed from 262144 elements on, each gradient alone",
                rules::threshold},
    BaselineRow{.name = "secopa",
                .help = "by SeCoPa's cost model, each gradient alone",
                .make = rules::secopa,
                .by_formulas = true},
};

}  // namespace

std::span<const BaselineRow> baselines() { return kAlone; }

}  // namespace hipress::planner
