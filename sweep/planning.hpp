#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/baselines/named_plans.hpp"
#include "sweep/spec.hpp"

namespace hipress::sweep {

/// Progress callback: called by one thread at a time with the number done and the total. May be
/// empty.
using Progress = std::function<void(std::int64_t done, std::int64_t all)>;

/// Makes a named plan; empty if the plan does not exist for the request. Throws io::InputError if
/// it cannot be made. Called by several threads at a time.
using MakePlan = std::function<std::optional<plans::ResolvedPlan>(
    std::string_view name, const planner::PlanRequest& request)>;

/// Settings for making the plans of a sweep.
struct Planning {
  std::vector<planner::NamedPlanRow> names = planner::named_plan_rows();
  MakePlan make = planner::named_plan;
  std::int64_t evaluations = planner::kEvaluations;  ///< budget of each search
  unsigned jobs = 1;  ///< plans made at a time; results do not depend on it
  Progress progress = {};
  /// Cache of searched plans, as plan YAML: `find` reads it, `keep` adds to it. Set both or
  /// neither; unset: no cache. Called by several threads at a time.
  std::function<std::optional<std::string>(const Point& point)> find = {};
  std::function<void(const Point& point, const std::string& text)> keep = {};
};

}  // namespace hipress::sweep
