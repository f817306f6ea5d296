#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costs/cluster.hpp"
#include "costs/profile.hpp"
#include "models/model.hpp"
#include "plans/plan_file.hpp"
#include "sim/simulator.hpp"

namespace hipress::sim {

/// A plan's name that plans::resolve_plan() does not know, since the plan has to be made for
/// machines: "best", "ddp".
struct PlannedName {
  std::string_view name;
  std::string_view help;
  bool depends_on_machines = true;  ///< else one plan serves for all profiles, clusters, networks
};

/// Plans that a search simulates unless the command line says how many: a second or a few.
inline constexpr std::int64_t kEvaluations = 300;

/// What such a plan is made for.
struct PlanningTask {
  std::string_view name;  ///< one of PlanSource::names
  const models::Model& model;
  std::string strategy;   ///< a row of casync::strategies()
  std::string algorithm;  ///< that compresses, where the name does not say: "onebit"
  const costs::Profile& profile;
  const costs::Cluster& cluster;
  Network network;
  std::int64_t evaluations = kEvaluations;  ///< plans that a search may simulate; more: better
};

/// Where plans come from that have to be made. This library knows no way to plan; its tools are
/// given one.
struct PlanSource {
  std::vector<PlannedName> names = {};
  /// The plan; none if there is no such plan for the task. io::InputError if it cannot be made.
  /// Called by several threads at a time.
  std::function<std::optional<plans::ResolvedPlan>(const PlanningTask& task)> plan = {};

  /// The row of that name, or null.
  const PlannedName* find(std::string_view name) const {
    for (const PlannedName& row : names) {
      if (row.name == name) return &row;
    }
    return nullptr;
  }
};

}  // namespace hipress::sim
