#pragma once

#include <string>

#include "models/model.hpp"
#include "plans/plan_file.hpp"
#include "tests/io/temporary_folder.hpp"

namespace hipress::tests {

/// Model of three fp32 gradients: a, b and c have 100, 300000 and 50 elements.
inline models::Model small_model() {
  models::Model model;
  model.name = "small";
  model.gradients = {{"a", 100, 0, models::Dtype::kFloat32},
                     {"b", 300000, 0, models::Dtype::kFloat32},
                     {"c", 50, 0, models::Dtype::kFloat32}};
  return model;
}

/// Algorithm that compresses gradient g, as text; "" if the gradient is raw.
inline std::string algorithm_of(const plans::ResolvedPlan& resolved, std::size_t g) {
  const std::int8_t index = resolved.plan.decisions.at(g).algorithm;
  return index == casync::kRaw ? ""
                               : resolved.plan.algorithms.at(static_cast<std::size_t>(index)).name;
}

inline std::int32_t partitions_of(const plans::ResolvedPlan& resolved, std::size_t g) {
  return resolved.plan.decisions.at(g).partitions;
}

/// Complaint about a plan file with this content, for small_model(). The folder's name is removed.
inline std::string complaint_about_plan(const std::string& name, const std::string& content,
                                        const plans::PlanContext& context) {
  const TemporaryFolder folder;
  const std::string path = folder.file(name, content);
  const std::string message = complaint([&] { plans::resolve_plan(path, context); });
  const std::string prefix = folder.path("");
  return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
}

}  // namespace hipress::tests
