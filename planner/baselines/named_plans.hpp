#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/problem/problem.hpp"
#include "plans/plan_file.hpp"

/// Plans that are made for given machines. Users ask for them by name: the field `plan` of requests
/// takes these names, and so do replays and sweeps.
namespace hipress::planner {

/// What such a plan is made for. Everything must outlive the call.
struct PlanRequest {
  const models::Model& model;
  std::string topology;   ///< a row of casync::topologies()
  std::string algorithm;  ///< that baselines compress with, and plan best may
  const Machines& machines;
  Limits limits = {};  ///< of searches; in evaluations, the same request gives the same plan
};

/// Plans that a search for one simulates unless told how many: a second or a few.
inline constexpr std::int64_t kEvaluations = 300;

/// A name, for help and for whoever makes many plans.
struct NamedPlanRow {
  std::string_view name;
  std::string_view help;
  bool depends_on_machines = true;  ///< else one plan serves for all profiles, clusters, networks
};
/// All of them, searched ones first.
std::vector<NamedPlanRow> named_plan_rows();

inline constexpr std::string_view kBest = "best";
inline constexpr std::string_view kBestUncompressed = "best_uncompressed";

/// "best": searched as hipress-plan does, with fp16 beside the algorithm where the profile knows
/// it, with half of the limits and with the other half without compression, in groups or not;
/// "best_uncompressed": that other half; or any of all_baselines() but none, fp16 and
/// all, which plans::resolve_plan() makes for whatever machines. None for other names, and for the
/// names of files. io::InputError if there is no such plan with this topology, or if it is too
/// large to be simulated.
std::optional<plans::ResolvedPlan> named_plan(std::string_view name, const PlanRequest& request);

/// Whether named_plan() makes a plan of that name, and whether it searches for it.
bool is_named_plan(std::string_view name);
bool is_searched(std::string_view name);

/// The kind of job that a plan of that name is for; averaging for names that are none.
JobKind kind_of_named_plan(std::string_view name);

/// "best, threshold_262144, secopa, …": for help and errors.
std::string named_plans();

/// As plans::resolve_plan(), and named plans for these machines; the machines' profile and cluster
/// are not looked at for others.
plans::ResolvedPlan resolve_plan(const std::string& path_or_name, const plans::PlanContext& context,
                                 const Machines& machines, std::int64_t evaluations = kEvaluations);

}  // namespace hipress::planner
