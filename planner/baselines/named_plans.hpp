#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/problem/problem.hpp"
#include "plans/plan_file.hpp"

/// Plans for given machines, by name: values of the field `plan` of requests, replays and sweeps.
namespace hipress::planner {

/// Input of a named plan. Everything must outlive the call.
struct PlanRequest {
  const models::Model& model;
  std::string topology;   ///< row of casync::topologies()
  std::string algorithm;  ///< algorithm of baselines; plan best may use it, too
  const Machines& machines;
  Limits limits = {};  ///< limits of searches; with `evaluations`, plans are reproducible
};

/// Default number of plans that a search simulates; this takes one or a few seconds.
inline constexpr std::int64_t kEvaluations = 300;

/// A plan's name, for help and for callers that make many plans.
struct NamedPlanRow {
  std::string_view name;
  std::string_view help;
  /// False: the same plan for all profiles, clusters and networks.
  bool depends_on_machines = true;
};
/// All names, the searched ones first.
std::vector<NamedPlanRow> named_plan_rows();

inline constexpr std::string_view kBest = "best";
inline constexpr std::string_view kBestUncompressed = "best_uncompressed";

/// Makes a named plan. "best" is searched as in hipress-plan, with groups or without, and with fp16
/// beside the algorithm if the profile has it. Half of the limits is for a search without
/// compression, half for one with it; "best_uncompressed" does only the former. Other names are
/// rows of all_baselines(), except none, fp16 and all, which plans::resolve_plan() makes for any
/// machines. Returns nullopt for any other text, such as the name of a file. Throws io::InputError
/// if the topology has no such plan, or if the plan is too large to be simulated.
std::optional<plans::ResolvedPlan> named_plan(std::string_view name, const PlanRequest& request);

/// True if named_plan() makes a plan of that name; is_searched(): true if it searches for it.
bool is_named_plan(std::string_view name);
bool is_searched(std::string_view name);

/// Kind of job that a plan of that name is for; averaging for unknown names.
JobKind kind_of_named_plan(std::string_view name);

/// Names of all named plans, for help and errors: "best, threshold_262144, secopa, …".
std::string named_plans();

/// Like plans::resolve_plan(), but also accepts the names of named_plan(). Only these named plans
/// use the machines' profile and cluster.
plans::ResolvedPlan resolve_plan(const std::string& path_or_name, const plans::PlanContext& context,
                                 const Machines& machines, std::int64_t evaluations = kEvaluations);

}  // namespace hipress::planner
