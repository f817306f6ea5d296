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

/// Called with how many are done and how many there are, by one thread at a time. May be empty.
using Progress = std::function<void(std::int64_t done, std::int64_t all)>;

/// Makes a named plan; none if there is no such plan for the request. io::InputError if it cannot
/// be made. Called by several threads at a time.
using MakePlan = std::function<std::optional<plans::ResolvedPlan>(
    std::string_view name, const planner::PlanRequest& request)>;

/// How a sweep's plans are made.
struct Planning {
  std::vector<planner::NamedPlanRow> names = planner::named_plan_rows();
  MakePlan make = planner::named_plan;
  std::int64_t evaluations = planner::kEvaluations;  ///< of each search
  unsigned jobs = 1;                                 ///< plans at a time; they do not depend on it
  Progress progress = {};
  /// `find` reads a cache of searched plans, as plan YAML, and `keep` adds to it. Give both or
  /// neither; without them nothing is cached. Several threads call them at a time.
  std::function<std::optional<std::string>(const Point& point)> find = {};
  std::function<void(const Point& point, const std::string& text)> keep = {};
};

}  // namespace hipress::sweep
