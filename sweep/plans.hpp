#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/baselines/named_plans.hpp"
#include "plans/plan_file.hpp"
#include "sweep/inputs.hpp"
#include "sweep/planning.hpp"

namespace hipress::sweep {

/// Role of a plan at a point: the point's own plan, or a baseline to compare it with.
enum class Role : std::uint8_t { kPoint, kUncompressed, kDdp };
inline constexpr std::array kAllRoles = {Role::kPoint, Role::kUncompressed, Role::kDdp};
inline constexpr std::size_t kRoles = kAllRoles.size();

/// A role at a point.
struct Wanted {
  std::int64_t index = 0;  ///< index of the point
  Role role = Role::kPoint;
};

/// Plans of a sweep's points. They are read from files, built in, or made for the machines of each
/// point. Each is made once.
class SweepPlans {
 public:
  /// Makes the plans in `wanted`, several of them concurrently. `inputs` must outlive this object.
  SweepPlans(const SweepInputs& inputs, const std::vector<Wanted>& wanted,
             const Planning& planning);

  std::size_t made() const { return made_.size(); }
  /// True if the point has that baseline, which must have been in `wanted`.
  bool is_possible(const Point& point, Role role) const;
  /// Plan of the point, with the cluster's GPUs per node. Throws InputError, with the spec's line
  /// that names the plan, if it cannot be made.
  plans::ResolvedPlan resolve(const Point& point, Role role) const;
  std::string_view name(const Point& point, Role role) const;
  /// Key of a plan: points with equal keys have the same plan.
  std::vector<std::uint32_t> key(const Point& point, Role role) const;
  /// Throws InputError if a profile lacks a codec of the plan. A plan made for one machine only
  /// needs that machine's profile; other plans need all profiles of the sweep.
  void require_codecs(const Point& point, Role role, const casync::Plan& plan) const;

 private:
  /// True if the point's parameters are sharded. Each GPU is then a node.
  bool is_sharded(const Point& point, Role role) const;
  /// Number of nodes of the plan: the value of axis kNodes or, if it is sharded, that of its GPUs.
  std::uint32_t nodes(const Point& point, Role role) const;
  /// Key of a plan that is made: the axis values that it depends on, and its name.
  struct PlanKey {
    std::vector<std::uint32_t> values;
    std::string_view name;
    auto operator<=>(const PlanKey&) const = default;
  };
  /// A plan that was made. If making it failed, it is empty and has a complaint; if it does not
  /// exist, it is empty without one.
  struct Made {
    Point point{};
    std::optional<plans::ResolvedPlan> plan;
    std::string complaint;
  };

  /// Row of a plan that is made by name; null if it is built in or read from a file.
  const planner::NamedPlanRow* planned_name(const Point& point, Role role) const;
  /// Key of a plan that is made. Baseline ddp does not depend on the algorithm, and some plans do
  /// not depend on the machines.
  PlanKey plan_key(const Point& point, const planner::NamedPlanRow& name) const;
  /// Throws InputError if axis partitions is set: plans that are made choose their partitions.
  void require_own_partitions(const Point& point) const;
  /// Makes a plan. A complaint is stored, and thrown at the first point that uses the plan. For a
  /// baseline nothing is thrown: it is left out.
  void make(const PlanKey& key, const Planning& planning, Made& made) const;
  std::optional<plans::ResolvedPlan> make_anew(const PlanKey& key, const Planning& planning,
                                               const Point& point) const;
  /// Parses a searched plan from the cache; empty if it does not fit the point.
  std::optional<plans::ResolvedPlan> kept(const std::string& text, const Point& point) const;
  plans::ResolvedPlan made_for(const Point& point, const planner::NamedPlanRow& name) const;
  void set_schedule(const Point& point, casync::Plan& plan) const;
  /// Plan that is built in or read from a file, with the partitions of axis kPartitions.
  plans::ResolvedPlan named_or_read(const Point& point, const plans::PlanContext& context) const;
  const AxisValue& value(const Point& point, Axis axis) const { return inputs_.value(point, axis); }

  const SweepInputs& inputs_;
  const std::vector<planner::NamedPlanRow> names_;
  const MakePlan make_;
  std::map<PlanKey, Made> made_;
};

}  // namespace hipress::sweep
