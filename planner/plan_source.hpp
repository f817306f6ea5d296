#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/search.hpp"
#include "plans/plan_file.hpp"
#include "sim/plan_source.hpp"

namespace hipress::planner {

inline constexpr std::string_view kBest = "best";
inline constexpr std::string_view kBestUncompressed = "best_uncompressed";

/// The plans that have a name and are made for machines: `best` and `best_uncompressed`, which are
/// searched, and the baselines that plans::resolve_plan() does not know.
sim::PlanSource plan_source();

/// Whether a name is one of them, and those of them that are baselines.
bool is_made(std::string_view name);
std::vector<std::string_view> baseline_names();

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
/// and with the other half without any, or a baseline that may be the plan. So it is no slower than
/// the same without algorithms, and as fast where compression brings nothing. Needs
/// Problem::machines. With limits in evaluations, the same problem gives the same plan.
/// io::InputError if every plan's graph is too large to simulate.
casync::Plan best_plan(const Problem& problem);

}  // namespace hipress::planner
