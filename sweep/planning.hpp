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

/// Progress callback, called by one thread at a time with the numbers done and in total; or empty.
using Progress = std::function<void(std::int64_t done, std::int64_t all)>;

/// Makes the plan of that name; empty if the request has no such plan. Throws io::InputError if it
/// cannot be made. Several threads call it concurrently.
using MakePlan = std::function<std::optional<plans::ResolvedPlan>(
    std::string_view name, const planner::PlanRequest& request)>;

/// Settings for the plans of a sweep.
struct Planning {
  std::vector<planner::NamedPlanRow> names = planner::named_plan_rows();
  MakePlan make = planner::named_plan;
  std::int64_t evaluations = planner::kEvaluations;  ///< budget of each search
  unsigned jobs = 1;  ///< plans made concurrently; results do not depend on it
  Progress progress = {};
  /// Cache of searched plans as plan YAML: `find` reads from it, `keep` adds to it. Set both or
  /// neither; without them there is no cache. Several threads call them concurrently.
  std::function<std::optional<std::string>(const Point& point)> find = {};
  std::function<void(const Point& point, const std::string& text)> keep = {};
};

}  // namespace hipress::sweep
