#pragma once

#include <cstdint>
#include <string>

#include "planner/search.hpp"
#include "plans/plan_file.hpp"
#include "sim/plan_source.hpp"

namespace hipress::planner {

/// The plans that have a name and are made for machines: `best`, which is searched, and the
/// baselines that plans::resolve_plan() does not know.
sim::PlanSource plan_source();

/// What plans that are made are made for.
struct PlanMachines {
  const costs::Profile& profile;
  const costs::Cluster& cluster;
  sim::Network network = sim::Network::kFair;
  std::int64_t evaluations = sim::kEvaluations;
};

/// As plans::resolve_plan(), which also makes the plans of plan_source(), for these machines.
/// InputError where there is no such plan for the context's topology, too.
plans::ResolvedPlan resolve_plan(const std::string& path_or_name, const plans::PlanContext& context,
                                 const PlanMachines& machines);

/// The fastest plan that is found: searched with half of the problem's limits with its algorithms,
/// and with the other half without any, or a baseline that may be the plan. Needs
/// Problem::machines. With limits in evaluations, the same problem gives the same plan.
/// io::InputError if every plan's graph is too large to simulate.
casync::Plan best_plan(const Problem& problem);

}  // namespace hipress::planner
