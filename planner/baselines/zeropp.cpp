#include "planner/baselines/zeropp.hpp"

#include <string>

namespace hipress::planner {

casync::Plan zeropp(const Problem& problem) {
  const std::uint32_t each = costs::nodes_per_host(problem.machines->cluster);
  const bool several = each > 1 && each < problem.nodes && problem.nodes % each == 0;
  casync::Plan plan = {.strategy = "allreduce",
                       .nodes = problem.nodes,
                       .algorithms = {algorithm("int8block"), algorithm("int4block")},
                       .decisions = {}};
  plan.decisions.assign(problem.model.gradients.size(), {.algorithm = 1});
  plan.gathers.assign(problem.model.gradients.size(), 0);
  const std::string reshard = several ? "(reshard=" + std::to_string(each) + ")" : "";
  plan.schedule = casync::Schedule::parse("fsdp" + reshard);
  if (several) plan.exchange_within = each;
  return plan;
}

}  // namespace hipress::planner
