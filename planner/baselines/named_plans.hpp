#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/problem/problem.hpp"
#include "plans/plan_file.hpp"

/// Plans made for given machines. Users ask for them by name: in the field `plan` of requests,
/// replays and sweeps.
namespace hipress::planner {

/// Input of a named plan. Everything must outlive the call.
struct PlanRequest {
  const models::Model& model;
  std::string topology;   ///< row of casync::topologies()
  std::string algorithm;  ///< algorithm of baselines, and allowed for plan best
  const Machines& machines;
  Limits limits = {};  ///< limits of searches; counted evaluations make plans reproducible
};

/// Default number of plans that a search simulates: a second or a few.
inline constexpr std::int64_t kEvaluations = 300;

/// A plan name, for help and for callers that make many plans.
struct NamedPlanRow {
  std::string_view name;
  std::string_view help;
  bool depends_on_machines = true;  ///< false: one plan for all profiles, clusters, networks
};
/// All names, the searched ones first.
std::vector<NamedPlanRow> named_plan_rows();

inline constexpr std::string_view kBest = "best";
inline constexpr std::string_view kBestUncompressed = "best_uncompressed";

/// Makes a named plan. "best": searched as hipress-plan does, with fp16 beside the algorithm if the
/// profile has it; half of the limits is for plans with compression, half for plans without, with
/// groups or not. "best_uncompressed": the latter half. Else a row of all_baselines(), except none,
/// fp16 and all, which plans::resolve_plan() makes for any machines. None for other names, and for
/// file names. Throws io::InputError if the topology has no such plan, or if it is too large to be
/// simulated.
std::optional<plans::ResolvedPlan> named_plan(std::string_view name, const PlanRequest& request);

/// True if named_plan() makes a plan of that name; is_searched(): if it is found by a search.
bool is_named_plan(std::string_view name);
bool is_searched(std::string_view name);

/// Kind of job that a plan of that name is for; averaging for unknown names.
JobKind kind_of_named_plan(std::string_view name);

/// Names of all named plans, for help and errors: "best, threshold_262144, secopa, …".
std::string named_plans();

/// Extends plans::resolve_plan() by named plans for these machines. Other plans do not use the
/// machines' profile and cluster.
plans::ResolvedPlan resolve_plan(const std::string& path_or_name, const plans::PlanContext& context,
                                 const Machines& machines, std::int64_t evaluations = kEvaluations);

}  // namespace hipress::planner
