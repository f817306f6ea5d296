#pragma once

#include <string>

#include "plans/plan_file.hpp"

/// Plan YAML as text, which write_plan_yaml() writes and resolve_plan() reads.
namespace hipress::plans {

/// The text that write_plan_yaml() writes.
std::string plan_yaml(const models::Model& model, const casync::Plan& plan,
                      const PlanReport& report);

/// Parses a plan YAML. `name` replaces the file's name in messages. Throws InputError as
/// resolve_plan() does.
ResolvedPlan parse_plan_yaml(const std::string& text, const std::string& name,
                             const PlanContext& context);

}  // namespace hipress::plans
